import { headerKind, SecretMask, secretsInHeader, secretSet, type Credential, type SecretSet } from '../core/index.ts'
import { isShownOfSignature, maskQuery } from './mask.ts'

/** Hex digits of a SigV4 signature, which end its header. */
const SIGNATURE_LENGTH = 64
/**
 * What serves many requests is worked out once; it goes with the credential, and when so many came after it: each takes about
 * 10 KiB, and a proxy may hold thousands of credentials. A caller's token goes with the request.
 */
const ofCredential = new WeakMap<Credential, { set: SecretSet; longest: number }>()
const MOST_CREDENTIALS = 100
const newest: WeakRef<Credential>[] = []

/** The texts that are secret in one request, and what is left of others without them. */
export class SecretTexts extends SecretMask {
  /** The value of a header that is secret by its name. */
  addHeader(name: string, value: string): void {
    for (const text of secretsInHeader(name, value)) this.add(text)
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

  /** The credential of a request. */
  addCredential(credential: Credential): void {
    if (credential.kind === 'none') return
    let known = ofCredential.get(credential)
    if (known === undefined) {
      const texts = textsOf(credential)
      known = { set: secretSet(texts), longest: Math.max(0, ...texts.map(({ length }) => length)) }
      ofCredential.set(credential, known)
      newest.push(new WeakRef(credential))
      const oldest = newest.length > MOST_CREDENTIALS ? newest.shift()?.deref() : undefined
      if (oldest !== undefined) ofCredential.delete(oldest)
    }
    this.addSet(known.set, known.longest)
  }

  /** The signature in the headers of a signed request. */
  addSignature(headers: readonly string[]): void {
    for (let index = 0; index + 1 < headers.length; index += 2)
      if (headers[index] === 'authorization') this.add((headers[index + 1] ?? '').slice(-SIGNATURE_LENGTH))
  }
}

function textsOf(credential: Exclude<Credential, { kind: 'none' }>): readonly string[] {
  return credential.kind === 'aws'
    ? [credential.secretAccessKey.reveal(), credential.sessionToken?.reveal() ?? '', credential.accessKeyId].filter(
        (text) => text !== '',
      )
    : secretsInHeader(credential.name, credential.value.reveal())
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value)
  } catch {
    return value
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
