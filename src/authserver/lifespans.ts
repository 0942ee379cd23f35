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
/** Seconds after `exp` during which an assertion is still accepted. */
export const EXPIRED_SECONDS = expiredSeconds
/** Seconds before `nbf` and `iat` at which it is accepted: the tolerated clock skew. */
export const EARLY_SECONDS = earlySeconds

/** A token without a login can't be revoked. */
export const WITHOUT_LOGIN_MS = 3_600_000

/** Maximum duration of a login, from the first button to the code. */
export const LOGIN_MS = 10 * 60_000

/** Maximum lifetime of a refresh token family (authserver.md §5). */
export const FAMILY_MS = 30 * 24 * 3_600_000

/** Defaults of the specification; the schema applies the same to a section that is present. */
const DEFAULTS = { authCodeLifespan: '10m', accessTokenLifespan: '1h', refreshTokenLifespan: '168h' } as const

/** `tokenLifespans` with defaults; validated by the schema. */
export function lifespansOf({ tokenLifespans }: Pick<EmbeddedAuthServer, 'tokenLifespans'>): Lifespans {
  const read = (name: keyof typeof DEFAULTS): number => {
    const ms = parseGoDuration(tokenLifespans?.[name] ?? DEFAULTS[name])
    if (ms === undefined) throw new Failure('config_error', { detail: `tokenLifespans.${name} is not a duration` })
    return ms
  }
  return {
    codeMs: read('authCodeLifespan'),
    accessMs: read('accessTokenLifespan'),
    refreshMs: read('refreshTokenLifespan'),
  }
}
