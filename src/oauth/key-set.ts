import type { webcrypto } from 'node:crypto'
import type { CryptoKey } from 'jose'
import { type ClaimValue, type Claims, Failure } from '../core/index.ts'

/** One public key of a JWKS, with what its members say about its use (RFC 7517 §4). */
export interface VerificationKey {
  readonly kid: string | undefined
  readonly alg: string | undefined
  /** What the key is, whatever it is called: equal for entries of one key. */
  readonly material: string
  /**
   * The key as `alg` uses it, imported at its first use and kept as long as the set; undefined when it is none for that
   * algorithm: another type or curve, members that do not parse, an RSA key that is too short or too long.
   */
  importFor(alg: string): Promise<CryptoKey | undefined>
}

/** What the keys of a set say to a token's header. */
export type KeyMatch =
  | { readonly kind: 'one'; readonly key: CryptoKey }
  /** No key fits: perhaps the provider has rotated. */
  | { readonly kind: 'none' }
  /** Several fit and nothing says which. */
  | { readonly kind: 'several' }

export const MIN_RSA_BITS = 2048
/** Verifying with a longer key would cost milliseconds of everybody's time. */
export const MAX_RSA_BITS = 8192
const MAX_KEYS = 100

/**
 * All that is taken of a published key: the members that identify one (RFC 7638 §3.2). `k` is not among them, so that
 * no symmetric key ever comes of a JWKS.
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
    // The same key listed twice is one key, not an ambiguity.
    if (entry !== undefined) usable.set(entry.identity, entry.key)
  }
  return [...usable.values()]
}

/** The same for an answer that has to be one. Throws `identity_provider_error`. */
export function readKeys(document: Claims): readonly VerificationKey[] {
  const keys = readKeySet(document)
  if (keys === undefined) throw new Failure('identity_provider_error', { detail: 'key set: the answer is no JWKS' })
  return keys
}

/**
 * What tells the keys of a JWKS document from each other: `kid`, else all of a key. Those that may not verify signatures
 * are among them.
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
  // A private key in a public place belongs to everybody by now.
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
  // Loaded where there are tokens to verify; the authenticator has done so by the time the first one comes.
  const { importJWK } = await import('jose')
  try {
    const key = await importJWK(material, alg)
    return key instanceof Uint8Array || !isSound(key) ? undefined : key
  } catch {
    return undefined
  }
}

/** jose looks at the length of an RSA key only when it verifies, and at no upper bound. */
function isSound(key: CryptoKey): boolean {
  const { modulusLength, publicExponent } = key.algorithm as Partial<webcrypto.RsaKeyAlgorithm>
  if (modulusLength === undefined || publicExponent === undefined) return true
  // The exponent comes without leading zeros. With 1, every text is its own signature.
  const isExponentSound = publicExponent.length > 1 || (publicExponent[0] ?? 0) > 1
  return modulusLength >= MIN_RSA_BITS && modulusLength <= MAX_RSA_BITS && isExponentSound
}

/** `EdDSA` and `Ed25519` are one algorithm under two names (RFC 9864 §2.2); jose knows EdDSA with no other curve. */
const EDWARDS: ReadonlySet<string> = new Set(['EdDSA', 'Ed25519'])

const isMeantFor = (key: VerificationKey, alg: string): boolean =>
  key.alg === undefined || key.alg === alg || (EDWARDS.has(key.alg) && EDWARDS.has(alg))

/**
 * The key that a token's `alg` and `kid` name. Without `kid` exactly one key must fit (decisions §2.3); one key under several
 * names, or with and without `alg`, is one.
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
