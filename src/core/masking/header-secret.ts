/** Where a secret is used in a request. */
export type HeaderForm = 'header value' | 'bearer token'

const MAX_BYTES = 8 * 1024
const BYTE_ORDER_MARK = '\uFEFF'
const CONTROL = /\p{Cc}/u
const IN_QUOTES = /^(["'`]).*\1$/
/** PEM and JSON keys have several lines. */
const KEY = /^\s*(?:-----BEGIN |\{)/

/**
 * Why a secret can't be a header value (decisions §3.3), without quoting it; undefined when it can. Expects one
 * trailing newline to be removed. Quotes or a scheme around a bearer token are copying mistakes.
 */
export function headerSecretProblem(text: string, form: HeaderForm): string | undefined {
  if (Buffer.byteLength(text) > MAX_BYTES) return 'it is longer than 8 KiB, too long for a header'
  const oddity = lineOddity(text)
  if (oddity !== undefined || form === 'header value') return oddity
  if (IN_QUOTES.test(text)) return 'it is in quotes'
  return /^\s*bearer\s/i.test(text) ? 'it begins with "Bearer ", which the proxy adds' : undefined
}

/**
 * Describes an unusual format of a password or client secret, without quoting it; undefined when it looks fine, and
 * for keys. The secret is still sent, because the receiver may have the same file.
 */
export function secretFormatWarning(text: string): string | undefined {
  if (KEY.test(text)) return undefined
  const oddity = lineOddity(text)
  if (oddity !== undefined) return oddity
  return IN_QUOTES.test(text) ? 'it is in quotes' : undefined
}

function lineOddity(text: string): string | undefined {
  if (text.startsWith(BYTE_ORDER_MARK)) return 'it begins with a byte order mark'
  if (/[\r\n]$/.test(text)) return 'it ends with a blank line'
  if (/[\r\n]/.test(text)) return 'it has more than one line'
  return CONTROL.test(text) ? 'it has control characters' : undefined
}
