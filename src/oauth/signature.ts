import type { RuleCode } from '../core/index.ts'
import { SIGNATURE_ALGORITHMS } from '../resources/index.ts'
import { findKey, MAX_RSA_BITS, MIN_RSA_BITS, type VerificationKey } from './key-set.ts'
import type { KeyStore } from './key-store.ts'

/** The algorithms that are accepted, as a set. */
export const ALGORITHMS: ReadonlySet<string> = new Set(SIGNATURE_ALGORITHMS)

/** What a JWT's header says about its signature, after the checks that need no key. */
export interface SignatureHeader {
  readonly alg: string
  readonly kid: string | undefined
}

/** `unknown_key`: no key fits; `ambiguous_key`: several do and nothing says which. */
export type SignatureCheck = 'good' | 'wrong' | 'unknown_key' | 'ambiguous_key'

/** What a set of keys says to a signature. */
export interface SignatureLook {
  readonly keys: readonly VerificationKey[]
  readonly check: SignatureCheck
}

/** The rule that a signature breaks. */
export const SIGNATURE_RULES = {
  wrong: 'signature_wrong',
  unknown_key: 'key_unknown',
  ambiguous_key: 'key_ambiguous',
} as const satisfies Readonly<Record<Exclude<SignatureCheck, 'good'>, RuleCode>>

/** Verifies the signature of a compact JWS with the key of `keys` that its `header` names. */
export async function lookAtSignature(
  token: string,
  header: SignatureHeader,
  keys: readonly VerificationKey[],
): Promise<SignatureLook> {
  return { keys, check: await checkSignature(token, header, keys) }
}

async function checkSignature(
  token: string,
  header: SignatureHeader,
  keys: readonly VerificationKey[],
): Promise<SignatureCheck> {
  const { compactVerify, errors } = await import('jose')
  const match = await findKey(keys, header.alg, header.kid)
  if (match.kind === 'none') return 'unknown_key'
  if (match.kind === 'several') return 'ambiguous_key'
  try {
    await compactVerify(token, match.key, { algorithms: [header.alg] })
    return 'good'
  } catch (error) {
    if (error instanceof errors.JOSEError) return 'wrong'
    // Not the token's fault, so that nobody is told to log in again.
    throw error
  }
}

/**
 * Verifies the signature of a compact JWS with the keys of a store, fetched again for a key that is not listed or may have
 * been replaced under its own `kid`. `first` is the result with the keys that were available, where there is one. Throws
 * `Failure` when keys that are needed can't be had.
 */
export async function verifySignature(
  token: string,
  header: SignatureHeader,
  store: KeyStore,
  first?: SignatureLook,
): Promise<SignatureCheck> {
  let last = first ?? (await lookAtSignature(token, header, await store.keys()))
  // There may have been newer ones while the older keys were looked at.
  for (let now = store.ready(); isOpen(last) && now !== undefined && now !== last.keys; now = store.ready())
    last = await lookAtSignature(token, header, now)
  if (last.check === 'wrong' && isSignatureLong(token, header.alg)) {
    const keys = await store.rechecked()
    return keys === undefined ? 'wrong' : checkSignature(token, header, keys)
  }
  if (last.check !== 'unknown_key' || !mayBeFound(token, header, store)) return last.check
  return checkSignature(token, header, await store.refreshed(keyName(header)))
}

/** Whether other keys might give another result. */
const isOpen = ({ check }: SignatureLook): boolean => check === 'unknown_key' || check === 'wrong'

/** What a key that a token wants is known by. Without `kid` it is any that `alg` fits. */
const keyName = ({ kid, alg }: SignatureHeader): string => kid ?? `{"alg":${JSON.stringify(alg)}}`

/**
 * Whether newer keys might verify the token (decisions §2.3): a key that is listed and does not fit stays so, and a signature that
 * no key of the algorithm makes is none, so that whoever can't sign does not use up the refreshes.
 */
const mayBeFound = (token: string, { alg, kid }: SignatureHeader, store: KeyStore): boolean =>
  (kid === undefined || !store.lists(kid)) && isSignatureLong(token, alg)

/** Bytes of a signature: RFC 7518 §3.4, RFC 8037 §3.1; those of RSA have the length of the modulus. */
const SIGNATURE_BYTES: Readonly<Record<string, number>> = { ES256: 64, ES384: 96, ES512: 132, EdDSA: 64, Ed25519: 64 }

/** Whether the signature of a token has a length that keys of its algorithm make. */
function isSignatureLong(token: string, alg: string): boolean {
  const bytes = Math.floor(((token.length - token.lastIndexOf('.') - 1) * 3) / 4)
  const expected = SIGNATURE_BYTES[alg]
  return expected === undefined ? bytes * 8 >= MIN_RSA_BITS && bytes * 8 <= MAX_RSA_BITS : bytes === expected
}
