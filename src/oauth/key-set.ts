import type { webcrypto } from 'node:crypto'
import type { CryptoKey } from 'jose'
import { type ClaimValue, type Claims, Failure } from '../core/index.ts'

/** A public key of a JWKS and its permitted use (RFC 7517 §4). */
export interface VerificationKey {
  readonly kid: string | undefined
  readonly alg: string | undefined
  /** Identifies the key material, equal for entries of one key. */
  readonly material: string
  /**
   * Imports the key for `alg` on first use and caches it with the set; undefined when it does not fit the algorithm:
   * type, curve, invalid fields, RSA length out of range.
   */
  importFor(alg: string): Promise<CryptoKey | undefined>
}

/** The keys that match a token's header. */
export type KeyMatch =
  | { readonly kind: 'one'; readonly key: CryptoKey }
  /** No key matches: the provider may have rotated. */
  | { readonly kind: 'none' }
  /** Several keys match ambiguously. */
  | { readonly kind: 'several' }

export const MIN_RSA_BITS = 2048
/** Larger keys would cost milliseconds per verification. */
export const MAX_RSA_BITS = 8192
const MAX_KEYS = 100

/**
 * The fields of a published key that are read: those that identify it (RFC 7638 §3.2). Without `k`, a JWKS never
 * yields a symmetric key.
 */
const PUBLIC_MEMBERS = ['kty', 'crv', 'x', 'y', 'n', 'e'] as const

type PublicMembers = Partial<Record<(typeof PUBLIC_MEMBERS)[number], string>>

/**
 * The keys of a JWKS document; undefined when the document is not one (no array `keys`). Keys that may not verify a
 * signature are left out one by one, as RFC 7517 §5 asks: `use` other than sig, `key_ops` without verify, private keys,
 * members of the wrong type. jose's own key sets are not used because they refuse a set for one odd member, and take the
 * same key listed twice for an ambiguity.
 */
export function readKeySet(document: Claims): readonly VerificationKey[] | undefined {
  const { keys } = document
  if (!Array.isArray(keys)) return undefined
  const usable = new Map<string, VerificationKey>()
  for (const jwk of (keys as readonly ClaimValue[]).slice(0, MAX_KEYS)) {
    const entry = readKey(jwk)
    // A key listed twice is one key, not an ambiguity.
    if (entry !== undefined) usable.set(entry.identity, entry.key)
  }
  return [...usable.values()]
}

/** As `readKeySet`, for a response. Throws `identity_provider_error`. */
export function readKeys(document: Claims): readonly VerificationKey[] {
  const keys = readKeySet(document)
  if (keys === undefined)
    throw new Failure('identity_provider_error', { detail: 'key set: the response is not a JWKS' })
  return keys
}

/**
 * The names of all keys in a JWKS document, `kid` or else the whole key, including keys that may not verify
 * signatures.
 */
export function keyNamesIn({ keys }: Claims): ReadonlySet<string> {
  const listed = Array.isArray(keys) ? (keys as readonly ClaimValue[]).slice(0, MAX_KEYS) : []
  return new Set(
    listed.map((jwk) => {
      const kid = typeof jwk === 'object' && jwk !== null ? (jwk as Claims)['kid'] : undefined
      return typeof kid === 'string' ? kid : JSON.stringify(jwk)
    }),
  )
}

function readKey(jwk: ClaimValue): { identity: string; key: VerificationKey } | undefined {
  if (typeof jwk !== 'object' || jwk === null || Array.isArray(jwk)) return undefined
  const members = Object.entries(jwk).filter(([, value]) => value !== null)
  const { use, key_ops: operations, kid, alg, d, ...rest } = Object.fromEntries(members) as Claims
  // A published private key is compromised.
  if (d !== undefined) return undefined
  if (use !== undefined && use !== 'sig') return undefined
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes('verify'))) return undefined
  if (kid !== undefined && typeof kid !== 'string') return undefined
  if (alg !== undefined && typeof alg !== 'string') return undefined
  const material: PublicMembers = {}
  for (const name of PUBLIC_MEMBERS) {
    const value = rest[name]
    if (typeof value === 'string') material[name] = value
  }
  const imported = new Map<string, Promise<CryptoKey | undefined>>()
  const importFor = (name: string): Promise<CryptoKey | undefined> => {
    const key = imported.get(name) ?? importKey(material, name)
    imported.set(name, key)
    return key
  }
  const same = JSON.stringify(material)
  return { identity: JSON.stringify([kid, alg, same]), key: { kid, alg, material: same, importFor } }
}

async function importKey(material: PublicMembers, alg: string): Promise<CryptoKey | undefined> {
  // Loaded on demand; the authenticator does so before the first token.
  const { importJWK } = await import('jose')
  try {
    const key = await importJWK(material, alg)
    return key instanceof Uint8Array || !isSound(key) ? undefined : key
  } catch {
    return undefined
  }
}

/** jose checks the length of an RSA key only when it verifies, and without an upper limit. */
function isSound(key: CryptoKey): boolean {
  const { modulusLength, publicExponent } = key.algorithm as Partial<webcrypto.RsaKeyAlgorithm>
  if (modulusLength === undefined || publicExponent === undefined) return true
  // The exponent has no leading zeros. With 1, every text is its own signature.
  const isExponentSound = publicExponent.length > 1 || (publicExponent[0] ?? 0) > 1
  return modulusLength >= MIN_RSA_BITS && modulusLength <= MAX_RSA_BITS && isExponentSound
}

/** `EdDSA` and `Ed25519` are two names of one algorithm (RFC 9864 §2.2); jose supports EdDSA with no other curve. */
const EDWARDS: ReadonlySet<string> = new Set(['EdDSA', 'Ed25519'])

const isMeantFor = (key: VerificationKey, alg: string): boolean =>
  key.alg === undefined || key.alg === alg || (EDWARDS.has(key.alg) && EDWARDS.has(alg))

/**
 * Finds the key for a token's `alg` and `kid`. Without `kid` exactly one key must match (decisions §2.3); entries of
 * one key count once.
 */
export async function findKey(
  keys: readonly VerificationKey[],
  alg: string,
  kid: string | undefined,
): Promise<KeyMatch> {
  const named = keys.filter((key) => (kid === undefined || key.kid === kid) && isMeantFor(key, alg))
  const distinct = new Map(named.map((key) => [key.material, key]))
  const imported = await Promise.all([...distinct.values()].map((key) => key.importFor(alg)))
  const fitting = imported.filter((key) => key !== undefined)
  const [key] = fitting
  if (key === undefined) return { kind: 'none' }
  return fitting.length === 1 ? { kind: 'one', key } : { kind: 'several' }
}
