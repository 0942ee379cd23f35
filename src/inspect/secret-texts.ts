import type { Credential } from '../core/index.ts'
import { credentialsOf } from '../http/index.ts'
import { headerKind, isShownOfSignature, MASK, maskQuery } from './mask.ts'

/** Shorter ones are in other texts by chance; such a value is masked where it stands alone. */
const MIN_WITHIN = 6
const PLAIN = /^[\w.~-]*$/
const SCHEME = /^(?:bearer|basic|token|apikey|digest|negotiate|dpop) +/i
/** Hex digits of a SigV4 signature, which end its header. */
const SIGNATURE_LENGTH = 64
/** More than any real request has; a request made of cookies must not cost its square. */
const MAX_TEXTS = 64

/** Of credentials that serve many requests, worked out once; it goes with them. */
const ofCredential = new WeakMap<Credential, readonly string[]>()

/** The texts that are secret in one request, and what is left of others without them. */
export class SecretTexts {
  #texts: string[] = []
  #longest = 0

  /** Length of the longest, in characters; a text that is cut shorter than this before its end may hold half of one. */
  get longest(): number {
    return this.#longest
  }

  /** The value of a header that is secret by its name: credentials after their scheme, each cookie's value. */
  addHeader(name: string, value: string): void {
    if (name === 'cookie') {
      for (const pair of value.split(';', MAX_TEXTS)) this.add(pair.slice(pair.indexOf('=') + 1).trim())
    } else if (name.startsWith('set-cookie')) this.add(value.slice(value.indexOf('=') + 1).split(';', 1)[0] ?? '')
    else if (name.endsWith('authorization')) {
      const credentials = credentialsOf(value)
      this.add(credentials)
      if (/^basic /i.test(value)) this.#addBasic(credentials)
    } else this.add(value.replace(SCHEME, '').trim())
  }

  /** The values in the query of a request target that are secret by name or look. */
  addTarget(target: string): void {
    const at = target.indexOf('?')
    if (at === -1) return
    maskQuery(target.slice(at + 1), (value) => {
      this.add(value)
      this.add(decoded(value))
    })
  }

  /** What a request is armed with. */
  addCredential(credential: Credential): void {
    if (credential.kind === 'none') return
    let texts = ofCredential.get(credential)
    if (texts === undefined) ofCredential.set(credential, (texts = textsOf(credential)))
    for (const text of texts) this.#push(text)
  }

  /** The signature in the headers of a signed request. */
  addSignature(headers: readonly string[]): void {
    for (let index = 0; index + 1 < headers.length; index += 2)
      if (headers[index] === 'authorization') this.add((headers[index + 1] ?? '').slice(-SIGNATURE_LENGTH))
  }

  /** One text, as it is and as it would be written in an address or in JSON. */
  add(text: string): void {
    if (text.length < MIN_WITHIN || this.#texts.length >= MAX_TEXTS) return
    for (const spelling of spellings(text)) this.#push(spelling)
  }

  /** True when a text holds one of them. */
  isIn(text: string): boolean {
    for (const secret of this.#texts) if (text.includes(secret)) return true
    return false
  }

  /** The text with each of them masked. */
  maskIn(text: string): string {
    let masked = text
    for (const secret of this.#texts) if (masked.includes(secret)) masked = masked.replaceAll(secret, MASK)
    return masked
  }

  #addBasic(credentials: string): void {
    const text = Buffer.from(credentials, 'base64').toString('utf8')
    this.add(text.slice(text.indexOf(':') + 1))
  }

  #push(text: string): void {
    if (this.#texts.includes(text)) return
    this.#texts.push(text)
    this.#longest = Math.max(this.#longest, text.length)
    // A text that holds another one is masked as a whole.
    if (this.#texts.length > 1) this.#texts.sort((one, other) => other.length - one.length)
  }
}

function textsOf(credential: Exclude<Credential, { kind: 'none' }>): readonly string[] {
  const plain =
    credential.kind === 'aws'
      ? [credential.secretAccessKey.reveal(), credential.sessionToken.reveal(), credential.accessKeyId]
      : headerTexts(credential.name, credential.value.reveal())
  return plain.flatMap(spellings).filter((text) => text.length >= MIN_WITHIN)
}

function headerTexts(name: string, value: string): string[] {
  const bare = value.replace(SCHEME, '').trim()
  const isBasic = name === 'authorization' && /^basic /i.test(value)
  const password = isBasic
    ? Buffer.from(bare, 'base64')
        .toString('utf8')
        .replace(/^[^:]*:/, '')
    : ''
  return [bare, password]
}

function spellings(text: string): string[] {
  if (PLAIN.test(text)) return [text]
  const json = JSON.stringify(text).slice(1, -1)
  return [...new Set([text, safeEncode(text), json, json.replaceAll('/', String.raw`\/`)])]
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value)
  } catch {
    return value
  }
}

function safeEncode(text: string): string {
  try {
    return encodeURIComponent(text)
  } catch {
    // Half a surrogate pair has no encoding.
    return text
  }
}

/** Adds the values of a header list (name, value, …) that are secret by name, or by being a header that the proxy sets. */
export function addSecretHeaders(texts: SecretTexts, headers: readonly string[], owned: readonly string[]): void {
  for (let index = 0; index + 1 < headers.length; index += 2) {
    const { name, kind } = headerKind(headers[index] ?? '')
    const isOwn = owned.includes(name) && !isShownOfSignature(name)
    if (kind === 'secret' || isOwn) texts.addHeader(name, headers[index + 1] ?? '')
  }
}
