import { createPublicKey, type KeyObject } from 'node:crypto'
import type { ClaimValue, Claims } from '../core/index.ts'
import { ALGORITHMS, type SignatureAlgorithm } from './algorithms.ts'

/** One public key of a JWKS, with what its members say about its use (RFC 7517 §4). */
export interface VerificationKey {
  readonly kid: string | undefined
  readonly alg: string | undefined
  readonly keyType: string
  readonly curve: string | undefined
  readonly key: KeyObject
}

/** What the keys of a set say to a token's header. */
export type KeyMatch =
  | { readonly kind: 'one'; readonly key: VerificationKey }
  /** No key fits: perhaps the provider has rotated. */
  | { readonly kind: 'none' }
  /** Several fit and nothing says which. */
  | { readonly kind: 'several' }

const MIN_RSA_BITS = 2048
/** Verifying with a longer key would cost milliseconds of everybody's time. */
const MAX_RSA_BITS = 8192
const MAX_KEYS = 100

/** Public members per key type, in the order in which they identify a key (RFC 7638 §3.2). */
const MEMBERS: Readonly<Record<string, readonly string[]>> = {
  RSA: ['e', 'n'],
  EC: ['crv', 'x', 'y'],
  OKP: ['crv', 'x'],
}

/**
 * The usable keys of a JWKS document; undefined when the document is not one (no array `keys`). Keys that cannot verify
 * a signature here are left out one by one, as RFC 7517 §5 asks: unknown types, `use` other than sig, `key_ops`
 * without verify, RSA under 2048 bits (RFC 7518 §3.3) or over 8192, private keys, members that do not parse.
 */
export function readKeySet(document: Claims): readonly VerificationKey[] | undefined {
  const { keys } = document
  if (!Array.isArray(keys)) return undefined
  const usable = new Map<string, VerificationKey>()
  for (const jwk of (keys as readonly ClaimValue[]).slice(0, MAX_KEYS)) {
    const entry = readKey(jwk)
    // The same key listed twice is one key, not an ambiguity.
    if (entry !== undefined) usable.set(entry.identity, entry.key)
  }
  return [...usable.values()]
}

function readKey(jwk: ClaimValue): { identity: string; key: VerificationKey } | undefined {
  if (typeof jwk !== 'object' || jwk === null || Array.isArray(jwk)) return undefined
  const { kty, use, key_ops: operations, kid, alg, d, crv } = jwk as Claims
  const members = typeof kty === 'string' && Object.hasOwn(MEMBERS, kty) ? MEMBERS[kty] : undefined
  // A private key in a public place belongs to everybody by now.
  if (typeof kty !== 'string' || members === undefined || d !== undefined) return undefined
  if (use !== undefined && use !== 'sig') return undefined
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes('verify'))) return undefined
  if (kid !== undefined && typeof kid !== 'string') return undefined
  if (alg !== undefined && typeof alg !== 'string') return undefined
  const material: Record<string, string> = { kty }
  for (const name of members) {
    const value = (jwk as Claims)[name]
    if (typeof value !== 'string') return undefined
    material[name] = value
  }
  const key = importKey(material)
  if (key === undefined) return undefined
  const curve = typeof crv === 'string' ? crv : undefined
  return { identity: JSON.stringify([kid, alg, material]), key: { kid, alg, keyType: kty, curve, key } }
}

function importKey(material: Record<string, string>): KeyObject | undefined {
  try {
    const key = createPublicKey({ key: material, format: 'jwk' })
    if (material['kty'] !== 'RSA') return key
    const { modulusLength = 0, publicExponent = 0n } = key.asymmetricKeyDetails ?? {}
    const isSound = modulusLength >= MIN_RSA_BITS && modulusLength <= MAX_RSA_BITS && publicExponent > 1n
    return isSound ? key : undefined
  } catch {
    return undefined
  }
}

const fits = (key: VerificationKey, alg: string, algorithm: SignatureAlgorithm): boolean =>
  key.keyType === algorithm.keyType &&
  (algorithm.curves === undefined || (key.curve !== undefined && algorithm.curves.includes(key.curve))) &&
  (key.alg === undefined || key.alg === alg || isSameEdwards(key, alg))

/** `EdDSA` with an Ed25519 key and `Ed25519` are one algorithm under two names (RFC 9864 §2.2). */
const isSameEdwards = (key: VerificationKey, alg: string): boolean =>
  key.curve === 'Ed25519' && (key.alg === 'EdDSA' || key.alg === 'Ed25519') && (alg === 'EdDSA' || alg === 'Ed25519')

/** The key that a token's `alg` and `kid` name. Without `kid` exactly one key must fit (decisions §2.3). */
export function findKey(keys: readonly VerificationKey[], alg: string, kid: string | undefined): KeyMatch {
  const algorithm = ALGORITHMS.get(alg)
  if (algorithm === undefined) return { kind: 'none' }
  const fitting = keys.filter((key) => (kid === undefined || key.kid === kid) && fits(key, alg, algorithm))
  const [key] = fitting
  if (key === undefined) return { kind: 'none' }
  return fitting.length === 1 ? { kind: 'one', key } : { kind: 'several' }
}
