import type { Claims } from './caller.ts'

/** Claim of tokens of the embedded authorization server that no login stands behind: the grant that they come of. */
export const GRANT_CLAIM = 'gty'

/** Who holds such a token: a person whom another identity provider vouches for, or a program. */
const HOLDERS = { 'id-jag': 'person', client_credentials: 'program', workload: 'program' } as const

export type GrantWithoutLogin = keyof typeof HOLDERS

/** Who holds a token of the embedded authorization server that no login stands behind; undefined for one that came of a login. */
export function holderWithoutLogin({ tsid, [GRANT_CLAIM]: grant }: Claims): 'person' | 'program' | undefined {
  if (tsid !== undefined || typeof grant !== 'string' || !Object.hasOwn(HOLDERS, grant)) return undefined
  return HOLDERS[grant as GrantWithoutLogin]
}
