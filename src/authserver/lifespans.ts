import { Failure } from '../core/index.ts'
import { parseGoDuration } from '../fields/index.ts'
import { clockTolerance } from '../oauth/index.ts'
import type { EmbeddedAuthServer } from '../resources/index.ts'

/** Validity durations in milliseconds. */
export interface Lifespans {
  readonly codeMs: number
  readonly accessMs: number
  readonly refreshMs: number
}

const { expiredSeconds, earlySeconds } = clockTolerance(undefined)
/** How long after `exp` an assertion of a client or issuer is accepted. */
export const EXPIRED_SECONDS = expiredSeconds
/** How long before `nbf` and `iat`: by so much their clocks may be ahead of the proxy's. */
export const EARLY_SECONDS = earlySeconds

/** Nothing ends a token that no login stands behind before its time. */
export const WITHOUT_LOGIN_MS = 3_600_000

/** From pressing the first button to the code: what a login may take. */
export const LOGIN_MS = 10 * 60_000

/** A refresh family ends this long after its login at the latest (authserver.md §5). */
export const FAMILY_MS = 30 * 24 * 3_600_000

/** What the specification has where nothing is said; the schema gives the same to a section that is there. */
const DEFAULTS = { authCodeLifespan: '10m', accessTokenLifespan: '1h', refreshTokenLifespan: '168h' } as const

/** `tokenLifespans` with its defaults; the schema has judged them. */
export function lifespansOf({ tokenLifespans }: Pick<EmbeddedAuthServer, 'tokenLifespans'>): Lifespans {
  const read = (name: keyof typeof DEFAULTS): number => {
    const ms = parseGoDuration(tokenLifespans?.[name] ?? DEFAULTS[name])
    if (ms === undefined) throw new Failure('config_error', { detail: `tokenLifespans.${name} is no duration` })
    return ms
  }
  return {
    codeMs: read('authCodeLifespan'),
    accessMs: read('accessTokenLifespan'),
    refreshMs: read('refreshTokenLifespan'),
  }
}
