import type { Credential, Sealed } from '../core/index.ts'

const NONE: readonly string[] = Object.freeze([])
const SCHEME = /^(?:bearer|basic|token|apikey|digest) +/i
const ASCII = /^[\x20-\x7e]*$/
/** Hex digits of a SigV4 signature, at the end of its header. */
const SIGNATURE_LENGTH = 64

/** Computed once per credential, and collected with it. */
const known = new WeakMap<Credential, readonly string[]>()

/**
 * Texts that a response must not contain: the credential of the request and other secrets, plain and percent-encoded.
 */
export function credentialTexts(sealed: Sealed): readonly string[] {
  const { credential, forwarded } = sealed.armed
  const texts = textsOf(credential)
  const all = credential.kind === 'aws' ? [...texts, ...signatureIn(sealed.headers)] : texts
  if (forwarded === undefined) return all
  return [...all, ...forwarded.filter(({ isPlain }) => isPlain !== true).flatMap(textsOf)]
}

function textsOf(credential: Credential): readonly string[] {
  if (credential.kind === 'none') return NONE
  let texts = known.get(credential)
  if (texts === undefined) known.set(credential, (texts = workedOut(credential)))
  return texts
}

function workedOut(credential: Exclude<Credential, { kind: 'none' }>): readonly string[] {
  const plain =
    credential.kind === 'aws'
      ? [credential.secretAccessKey.reveal(), credential.sessionToken?.reveal() ?? '']
      : [credential.value.reveal().replace(SCHEME, '').trim()]
  return [...new Set(plain.flatMap(spellings))].filter((text) => text !== '')
}

/** A signature is valid for some minutes. */
function signatureIn(headers: readonly string[]): readonly string[] {
  for (let index = 0; index + 1 < headers.length; index += 2)
    if (headers[index] === 'authorization') return [(headers[index + 1] ?? '').slice(-SIGNATURE_LENGTH)]
  return NONE
}

/** Encodings of a header value: one byte per character, percent-encoded, and for non-ASCII values as text. */
function spellings(text: string): readonly string[] {
  if (ASCII.test(text)) return [text, encodeURIComponent(text)]
  const bytes = Buffer.from(text, 'latin1')
  return [text, encodeURIComponent(bytes.toString('utf8')), Buffer.from(text, 'utf8').toString('latin1')]
}
