/**
 * An HTTP date (RFC 9110 §5.6.7) in milliseconds since the epoch, in each of its three forms; NaN for anything else. The oldest
 * form names no zone and is UTC, for which `Date.parse` would take that of the machine.
 */
export const parseHttpDate = (text: string): number => Date.parse(/ \d{4}$/.test(text) ? `${text} GMT` : text)
