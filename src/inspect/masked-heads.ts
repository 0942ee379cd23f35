import { headerKind, isSecretHeader, MASK, maskedSession, maskLooks, maskTarget } from './mask.ts'
import type { SecretTexts } from './secret-texts.ts'

/** Longest value that is kept of one header, in characters. */
const MAX_VALUE = 4096
/** Most lines that are kept of one head. */
const MAX_LINES = 400

/** Header lines (name, value, …) as they may be kept: lower-case names, secret values masked, long ones cut. */
export function maskedHeaders(
  headers: readonly string[],
  texts: SecretTexts,
  owned: readonly string[] = [],
): readonly string[] {
  const length = Math.min(headers.length, 2 * MAX_LINES)
  const masked = headers.slice(0, length)
  for (let index = 0; index + 1 < length; index += 2) {
    const raw = headers[index] ?? ''
    const name = raw.toLowerCase()
    masked[index] = raw === name ? name : texts.maskIn(raw).toLowerCase()
    masked[index + 1] = maskedValue(name, headers[index + 1] ?? '', texts, owned)
  }
  // Asked once for all of them: most heads hold none.
  if (texts.isIn(masked.join('\n')))
    for (let index = 0; index < length; index++) masked[index] = texts.maskIn(masked[index] ?? '')
  return masked
}

function maskedValue(name: string, value: string, texts: SecretTexts, owned: readonly string[]): string {
  const kind = isSecretHeader(name, owned) ? 'secret' : headerKind(name)
  if (kind === 'plain') return value.length > MAX_VALUE ? cut(maskLooks(texts.maskIn(value))) : maskLooks(value)
  if (kind === 'address') return cut(maskTarget(texts.maskIn(value)))
  if (kind === 'session') return maskedSession(value)
  return maskedCredential(value)
}

const cut = (value: string): string => (value.length > MAX_VALUE ? `${value.slice(0, MAX_VALUE)}…` : value)

/** The scheme and what a signature covers help, and give nothing away. */
function maskedCredential(value: string): string {
  if (value.startsWith('AWS4-HMAC-SHA256 '))
    return value
      .replace(/Credential=([A-Z]{0,4})[^/,]*/, `Credential=$1${MASK}`)
      .replace(/Signature=.*$/, `Signature=${MASK}`)
  const scheme = /^(?:Bearer|Basic|Digest|DPoP|Negotiate) /i.exec(value)?.[0] ?? ''
  return `${scheme}${MASK}`
}

/** The parsed headers of a backend's answer as a flat list; one that was repeated is there as often. */
export function flatHeaders(headers: Readonly<Record<string, string | readonly string[] | undefined>>): string[] {
  const flat: string[] = []
  for (const name in headers) {
    const value = headers[name]
    if (typeof value === 'string') flat.push(name, value)
    else for (const line of value ?? []) flat.push(name, line)
  }
  return flat
}
