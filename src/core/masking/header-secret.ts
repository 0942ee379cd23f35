/** What a secret is to be in a request. */
export type HeaderForm = 'header value' | 'bearer token'

const MAX_BYTES = 8 * 1024
const BYTE_ORDER_MARK = '\uFEFF'
const CONTROL = /\p{Cc}/u

/**
 * Why a secret can't be a header (decisions §3.3), in words that hold nothing of it; undefined when it can. One newline at
 * its end has been taken away before. A bearer token in quotes, or with its scheme before it, is what somebody copied
 * together with the token.
 */
export function headerSecretProblem(text: string, form: HeaderForm): string | undefined {
  if (Buffer.byteLength(text) > MAX_BYTES) return 'it is longer than 8 KiB, too long for a header'
  if (text.startsWith(BYTE_ORDER_MARK)) return 'it begins with a byte order mark'
  if (/[\r\n]$/.test(text)) return 'it ends with a blank line'
  if (/[\r\n]/.test(text)) return 'it has more than one line'
  if (CONTROL.test(text)) return 'it has control characters'
  if (form === 'header value') return undefined
  if (/^(["'`]).*\1$/.test(text)) return 'it is in quotes'
  return /^\s*bearer\s/i.test(text) ? 'it begins with "Bearer ", which is added to it' : undefined
}
