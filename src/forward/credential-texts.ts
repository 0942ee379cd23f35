import type { Credential, Sealed } from '../core/index.ts'

const NONE: readonly string[] = Object.freeze([])
const SCHEME = /^(?:bearer|basic|token|apikey|digest) +/i
const ASCII = /^[\x20-\x7e]*$/
/** Hex digits of a SigV4 signature, which end its header. */
const SIGNATURE_LENGTH = 64

/** Worked out once per credential; they go with it. */
const known = new WeakMap<Credential, readonly string[]>()

/**
 * The texts that must not come back in an answer: the credential of the request and the secrets beside it, as they are and
 * percent-encoded.
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

/** It is good for some minutes for whoever sees it. */
function signatureIn(headers: readonly string[]): readonly string[] {
  for (let index = 0; index + 1 < headers.length; index += 2)
    if (headers[index] === 'authorization') return [(headers[index + 1] ?? '').slice(-SIGNATURE_LENGTH)]
  return NONE
}

/** A text of a header, one byte per character: as it is, percent-encoded, and where it is not ASCII by who takes characters for text. */
function spellings(text: string): readonly string[] {
  if (ASCII.test(text)) return [text, encodeURIComponent(text)]
  const bytes = Buffer.from(text, 'latin1')
  return [text, encodeURIComponent(bytes.toString('utf8')), Buffer.from(text, 'utf8').toString('latin1')]
}
