import { createPrivateKey, createPublicKey, generateKeyPairSync, hash, type KeyObject } from 'node:crypto'
import { Failure, type IssuerKey, type Secret } from '../core/index.ts'

/** A key that signs our tokens, and its public half. */
export interface SigningKey extends IssuerKey {
  readonly privateKey: KeyObject
  /** As it is published (RFC 7517). */
  readonly jwk: Readonly<Record<string, string>>
}

const LEAST_RSA_BITS = 2048
/** Verifiers would be slow with a longer one, and some refuse it. */
const MOST_RSA_BITS = 8192

const EC_ALGORITHMS: Readonly<Record<string, string>> = { 'P-256': 'ES256', 'P-384': 'ES384', 'P-521': 'ES512' }

/** The members of a public key that identify it, in the order of RFC 7638 §3.2 (RFC 8037 §2 for OKP). */
const MEMBERS: Readonly<Record<string, readonly string[]>> = {
  RSA: ['e', 'kty', 'n'],
  EC: ['crv', 'kty', 'x', 'y'],
  OKP: ['crv', 'kty', 'x'],
}

/**
 * Reads a private key in PEM: PKCS#1, SEC1 or PKCS#8; RSA of 2048 to 8192 bits, P-256, P-384, P-521, Ed25519 (authserver.md §5).
 * Its `kid` is the RFC 7638 thumbprint. `label` is the secret's, for the message. Throws `config_error`.
 */
export function readSigningKey(pem: Secret, label: string): SigningKey {
  let key: KeyObject
  try {
    key = createPrivateKey({ key: pem.reveal(), format: 'pem' })
  } catch {
    // The text of the cause may quote what it could not read.
    throw unusable(label, 'is not a private key in PEM without passphrase')
  }
  return signingKeyOf(key, label)
}

/** A key made now, of use to this process only: P-256. */
export function makeSigningKey(): SigningKey {
  return signingKeyOf(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey, 'made at start')
}

function signingKeyOf(privateKey: KeyObject, label: string): SigningKey {
  const publicKey = createPublicKey(privateKey)
  const alg = algorithmOf(privateKey, publicKey, label)
  const exported = publicKey.export({ format: 'jwk' }) as Readonly<Record<string, string>>
  const members = (MEMBERS[exported.kty ?? ''] ?? []).map((name) => [name, exported[name] ?? ''])
  const kid = hash('sha256', JSON.stringify(Object.fromEntries(members)), 'base64url')
  return { kid, alg, publicKey, privateKey, jwk: { ...exported, kid, alg, use: 'sig' } }
}

function algorithmOf(privateKey: KeyObject, publicKey: KeyObject, label: string): string {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = privateKey
  if (type === 'rsa') {
    const bits = details?.modulusLength ?? 0
    if (bits < LEAST_RSA_BITS || bits > MOST_RSA_BITS)
      throw unusable(label, `has ${bits} bits, RSA keys need ${LEAST_RSA_BITS} to ${MOST_RSA_BITS}`)
    return 'RS256'
  }
  if (type === 'ed25519') return 'EdDSA'
  const curve = type === 'ec' ? publicKey.export({ format: 'jwk' }).crv : undefined
  const alg = EC_ALGORITHMS[curve ?? '']
  if (alg === undefined) throw unusable(label, 'is no RSA, P-256, P-384, P-521 or Ed25519 key')
  return alg
}

const unusable = (label: string, what: string): Failure =>
  new Failure('config_error', { detail: `the signing key ${label} ${what}`, secret: label })
