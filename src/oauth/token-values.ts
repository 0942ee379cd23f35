import { Secret } from '../core/index.ts'

/** Largest token that goes into a header, in characters. */
const MAX_TOKEN_LENGTH = 16 * 1024
/** Visible ASCII (RFC 6749 appendix A.12): anything else can't be sent in a header or would end the value early. */
const TOKEN = /^[\x21-\x7e]+$/
const NUMERIC = /^\d{1,12}(?:\.\d{1,9})?$/
/** Nobody keeps a token for longer, and a wrong unit must not make it eternal. */
export const MAX_LIFETIME_MS = 366 * 86_400_000

/** What is wrong with a value, after its name. */
export type Refuse = (why: string) => Error

/** A token of an answer; `max` in characters, default 16 KiB. Throws what `refuse` makes of `is …`, `has …`. */
export function readTokenValue(value: unknown, refuse: Refuse, max = MAX_TOKEN_LENGTH): Secret {
  if (typeof value !== 'string') throw refuse('is not a string')
  if (value.length > max) throw refuse(`is longer than ${max / 1024} KiB`)
  if (!TOKEN.test(value)) throw refuse('has characters that no header can carry')
  return new Secret(value)
}

/** `expires_in` in milliseconds, at most 366 days; a text of digits is taken, too. Undefined where it is absent. */
export function readLifetimeMs(value: unknown, refuse: Refuse): number | undefined {
  if (value === undefined || value === null) return undefined
  const seconds = typeof value === 'string' && NUMERIC.test(value) ? Number(value) : value
  if (typeof seconds !== 'number' || !Number.isFinite(seconds)) throw refuse('is not a number')
  if (seconds <= 0) throw refuse('is not positive')
  return Math.min(seconds * 1_000, MAX_LIFETIME_MS)
}
