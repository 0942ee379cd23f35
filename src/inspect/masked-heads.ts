import { headerKind, MASK, maskLooks } from '../core/index.ts'
import { isShownOfSignature, maskedSession, maskTarget } from './mask.ts'
import type { SecretTexts } from './secret-texts.ts'

/** Maximum stored characters of a header value. */
const MAX_VALUE = 4096
/** Maximum stored header lines of a message. */
const MAX_LINES = 400

/**
 * A head as it may be kept once it is searched as well (`searched`): names in lower case and values in turn, a line each,
 * values that are secret by name masked, long ones cut. One text, because hundreds of requests are kept, and what a head is
 * made of would be kept with each of them.
 */
export function unsearchedHead(
  headers: readonly string[],
  texts: SecretTexts,
  owned: readonly string[] = NONE,
): string {
  const length = Math.min(headers.length, 2 * MAX_LINES)
  const lines: string[] = []
  for (let index = 0; index + 1 < length; index += 2) {
    const value = headers[index + 1] ?? ''
    const { name, kind } = headerKind(headers[index] ?? '')
    const isPlain = kind === 'plain' && value.length <= MAX_VALUE && !owned.includes(name)
    lines.push(name, isPlain ? value : maskedValue(name, kind, value, texts, owned))
  }
  return lines.join('\n')
}

/** Occurs in no encoding and no escape: the texts before and after it are searched separately. */
const APART = '"\n"'

/** Masks the texts of one request. */
export interface Searched {
  /** True if a previous search found nothing to mask. */
  isClean(text: string): boolean
  /** The text with secrets and secret-like values masked. */
  mask(text: string): string
}

/** Searches several texts of a request at once: most contain no secret and need no search of their own. */
export function searched(parts: readonly string[], texts: SecretTexts): Searched {
  const all = parts.join(APART)
  const clean = maskLooks(all) === all && !texts.isIn(all) ? parts : NONE
  return {
    isClean: (text) => clean.includes(text),
    mask: (text) => (clean.includes(text) ? text : texts.maskIn(maskLooks(text))),
  }
}

const NONE: readonly string[] = []

/** The header lines of a stored head, as pairs. */
export function pairsOf(head: string): [string, string][] {
  if (head === '') return []
  const lines = head.split('\n')
  const pairs: [string, string][] = []
  for (let index = 0; index + 1 < lines.length; index += 2) pairs.push([lines[index] ?? '', lines[index + 1] ?? ''])
  return pairs
}

function maskedValue(
  name: string,
  ownKind: string,
  value: string,
  texts: SecretTexts,
  owned: readonly string[],
): string {
  const kind = owned.includes(name) && !isShownOfSignature(name) ? 'secret' : ownKind
  // Before truncation: half a secret would not be found.
  if (kind === 'plain') return cut(maskLooks(texts.maskIn(value)))
  if (kind === 'address') return cut(maskTarget(texts.maskIn(value)))
  if (kind === 'session') return maskedSession(value)
  return maskedCredential(value)
}

const cut = (value: string): string => (value.length > MAX_VALUE ? `${value.slice(0, MAX_VALUE)}…` : value)

/** The scheme and the signed headers help to debug and are not secret. */
function maskedCredential(value: string): string {
  if (value.startsWith('AWS4-HMAC-SHA256 '))
    return value
      .replace(/Credential=([A-Z]{0,4})[^/,]*/, `Credential=$1${MASK}`)
      .replace(/Signature=.*$/, `Signature=${MASK}`)
  const scheme = /^(?:Bearer|Basic|Digest|DPoP|Negotiate) /i.exec(value)?.[0] ?? ''
  return `${scheme}${MASK}`
}

/** The parsed headers of a backend's response as a flat list, repeated ones included. */
export function flatHeaders(headers: Readonly<Record<string, string | readonly string[] | undefined>>): string[] {
  const flat: string[] = []
  for (const name in headers) {
    const value = headers[name]
    if (typeof value === 'string') flat.push(name, value)
    else for (const line of value ?? []) flat.push(name, line)
  }
  return flat
}
