/** What a secret is to be in a request. */
export type HeaderForm = 'header value' | 'bearer token'

const MAX_BYTES = 8 * 1024
const BYTE_ORDER_MARK = '\uFEFF'
const CONTROL = /\p{Cc}/u
const IN_QUOTES = /^(["'`]).*\1$/
/** Keys have lines. */
const KEY = /^\s*(?:-----BEGIN |\{)/

/**
 * Why a secret can't be a header (decisions §3.3), in words that hold nothing of it; undefined when it can. One newline at
 * its end has been taken away before. A bearer token in quotes, or with its scheme before it, is what somebody copied
 * together with the token.
 */
export function headerSecretProblem(text: string, form: HeaderForm): string | undefined {
  if (Buffer.byteLength(text) > MAX_BYTES) return 'it is longer than 8 KiB, too long for a header'
  const oddity = lineOddity(text)
  if (oddity !== undefined || form === 'header value') return oddity
  if (IN_QUOTES.test(text)) return 'it is in quotes'
  return /^\s*bearer\s/i.test(text) ? 'it begins with "Bearer ", which is added to it' : undefined
}

/**
 * What hardly anybody means in a password or client secret, in words that hold nothing of it; undefined where nothing is odd, and
 * for keys. It is sent as it is all the same: whoever takes it may have been given the same file.
 */
export function oddityOfSecret(text: string): string | undefined {
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
