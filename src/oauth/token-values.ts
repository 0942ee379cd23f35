import { Secret } from '../core/index.ts'

/** Maximum token length for a header, in characters. */
const MAX_TOKEN_LENGTH = 16 * 1024
/**
 * Visible ASCII (RFC 6749 appendix A.12): other characters can't be sent in a header or would end the value early.
 */
const TOKEN = /^[\x21-\x7e]+$/
const NUMERIC = /^\d{1,12}(?:\.\d{1,9})?$/
/** Caps lifetimes, so that a wrong unit can't make a token eternal. */
export const MAX_LIFETIME_MS = 366 * 86_400_000

/** Creates an error from the defect of a value, phrased to follow its name. */
export type Refuse = (why: string) => Error

/**
 * Validates a token of a response; `max` in characters, default 16 KiB. Throws `refuse('is …')` or `refuse('has …')`.
 */
export function readTokenValue(value: unknown, refuse: Refuse, max = MAX_TOKEN_LENGTH): Secret {
  if (typeof value !== 'string') throw refuse('is not a string')
  if (value.length > max) throw refuse(`is longer than ${max / 1024} KiB`)
  if (!TOKEN.test(value)) throw refuse('has characters that are invalid in a header')
  return new Secret(value)
}

/** `expires_in` in milliseconds, at most 366 days; a string of digits is accepted. Undefined when absent. */
export function readLifetimeMs(value: unknown, refuse: Refuse): number | undefined {
  if (value === undefined || value === null) return undefined
  const seconds = typeof value === 'string' && NUMERIC.test(value) ? Number(value) : value
  if (typeof seconds !== 'number' || !Number.isFinite(seconds)) throw refuse('is not a number')
  if (seconds <= 0) throw refuse('is not positive')
  return Math.min(seconds * 1_000, MAX_LIFETIME_MS)
}
