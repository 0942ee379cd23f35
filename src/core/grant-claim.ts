import type { Claims } from './caller.ts'

/** Claim of the embedded authorization server's tokens that were issued without a login: their grant. */
export const GRANT_CLAIM = 'gty'

/** Token holder by grant: a person with an identity assertion, or a program. */
const HOLDERS = { 'id-jag': 'person', client_credentials: 'program', workload: 'program' } as const

export type GrantWithoutLogin = keyof typeof HOLDERS

/**
 * The holder of an embedded authorization server's token that was issued without a login; undefined for tokens of a
 * login.
 */
export function holderWithoutLogin({ tsid, [GRANT_CLAIM]: grant }: Claims): 'person' | 'program' | undefined {
  if (tsid !== undefined || typeof grant !== 'string' || !Object.hasOwn(HOLDERS, grant)) return undefined
  return HOLDERS[grant as GrantWithoutLogin]
}
