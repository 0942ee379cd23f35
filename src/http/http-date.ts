import type { EpochMs } from '../core/index.ts'

/**
 * Parses an HTTP date (RFC 9110 §5.6.7) in each of its three forms; NaN for anything else. The oldest form has no
 * zone and means UTC, which `Date.parse` would read as local time.
 */
export const parseHttpDate = (text: string): EpochMs => Date.parse(/ \d{4}$/.test(text) ? `${text} GMT` : text)
