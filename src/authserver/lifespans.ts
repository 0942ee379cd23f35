import { Failure } from '../core/index.ts'
import { parseGoDuration, type EmbeddedAuthServer } from '../resources/index.ts'

/** Validity durations in milliseconds. */
export interface Lifespans {
  readonly codeMs: number
  readonly accessMs: number
  readonly refreshMs: number
}

/** From pressing the first button to the code: what a login may take. */
export const LOGIN_MS = 10 * 60_000

/** A refresh family ends this long after its login at the latest (authserver.md §5). */
export const FAMILY_MS = 30 * 24 * 3_600_000

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

const BOUNDS = {
  authCodeLifespan: { least: 30 * SECOND, most: 10 * MINUTE, fallback: 10 * MINUTE, says: '30s to 10m' },
  accessTokenLifespan: { least: MINUTE, most: 24 * HOUR, fallback: HOUR, says: '1m to 24h' },
  refreshTokenLifespan: { least: HOUR, most: 720 * HOUR, fallback: 168 * HOUR, says: '1h to 720h' },
} as const

/** `tokenLifespans` with its defaults. Throws `config_error` for one that is out of its bounds (authserver.md §5). */
export function lifespansOf({ tokenLifespans }: Pick<EmbeddedAuthServer, 'tokenLifespans'>): Lifespans {
  const read = (name: keyof typeof BOUNDS): number => {
    const { least, most, fallback, says } = BOUNDS[name]
    const text = tokenLifespans?.[name]
    const ms = text === undefined ? fallback : parseGoDuration(text)
    if (ms === undefined || ms < least || ms > most)
      throw new Failure('config_error', { detail: `tokenLifespans.${name} is not ${says}` })
    return ms
  }
  return {
    codeMs: read('authCodeLifespan'),
    accessMs: read('accessTokenLifespan'),
    refreshMs: read('refreshTokenLifespan'),
  }
}
