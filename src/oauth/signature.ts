import type { RuleCode } from '../core/index.ts'
import { SIGNATURE_ALGORITHMS } from '../resources/index.ts'
import { findKey, MAX_RSA_BITS, MIN_RSA_BITS, type VerificationKey } from './key-set.ts'
import type { KeyStore } from './key-store.ts'

/** The accepted algorithms. */
export const ALGORITHMS: ReadonlySet<string> = new Set(SIGNATURE_ALGORITHMS)

/** The validated signature header of a JWT. */
export interface SignatureHeader {
  readonly alg: string
  readonly kid: string | undefined
}

/** `unknown_key`: no key matches; `ambiguous_key`: several match. */
export type SignatureCheck = 'good' | 'wrong' | 'unknown_key' | 'ambiguous_key'

/** The result of a verification with a set of keys. */
export interface SignatureLook {
  readonly keys: readonly VerificationKey[]
  readonly check: SignatureCheck
}

/** The rule that each failed check violates. */
export const SIGNATURE_RULES = {
  wrong: 'signature_wrong',
  unknown_key: 'key_unknown',
  ambiguous_key: 'key_ambiguous',
} as const satisfies Readonly<Record<Exclude<SignatureCheck, 'good'>, RuleCode>>

/** Verifies the signature of a compact JWS with the key of `keys` that its `header` selects. */
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
    // Not the token's fault: the client must not log in again.
    throw error
  }
}

/**
 * Verifies the signature of a compact JWS with the keys of a store, refreshed for an unlisted key or one that may
 * have been replaced under the same `kid`. `first` is the result with the current keys, if available. Throws
 * `Failure` when required keys are unavailable.
 */
export async function verifySignature(
  token: string,
  header: SignatureHeader,
  store: KeyStore,
  first?: SignatureLook,
): Promise<SignatureCheck> {
  let last = first ?? (await lookAtSignature(token, header, await store.keys()))
  // Newer keys may have arrived during the verification.
  for (let now = store.ready(); isOpen(last) && now !== undefined && now !== last.keys; now = store.ready())
    last = await lookAtSignature(token, header, now)
  if (last.check === 'wrong' && isSignatureLong(token, header.alg)) {
    const keys = await store.rechecked()
    return keys === undefined ? 'wrong' : checkSignature(token, header, keys)
  }
  if (last.check !== 'unknown_key' || !mayBeFound(token, header, store)) return last.check
  return checkSignature(token, header, await store.refreshed(keyName(header)))
}

/** Whether other keys may change the result. */
const isOpen = ({ check }: SignatureLook): boolean => check === 'unknown_key' || check === 'wrong'

/** The name under which a token's key is tracked; without `kid`, any key that fits `alg`. */
const keyName = ({ kid, alg }: SignatureHeader): string => kid ?? `{"alg":${JSON.stringify(alg)}}`

/**
 * Whether newer keys may verify the token (decisions §2.3): not when the listed key does not fit, or the signature
 * has an impossible length, so that invalid tokens do not use up the refreshes.
 */
const mayBeFound = (token: string, { alg, kid }: SignatureHeader, store: KeyStore): boolean =>
  (kid === undefined || !store.lists(kid)) && isSignatureLong(token, alg)

/** Signature lengths in bytes: RFC 7518 §3.4, RFC 8037 §3.1; for RSA that of the modulus. */
const SIGNATURE_BYTES: Readonly<Record<string, number>> = { ES256: 64, ES384: 96, ES512: 132, EdDSA: 64, Ed25519: 64 }

/** Whether the signature has a length that keys of its algorithm produce. */
function isSignatureLong(token: string, alg: string): boolean {
  const bytes = Math.floor(((token.length - token.lastIndexOf('.') - 1) * 3) / 4)
  const expected = SIGNATURE_BYTES[alg]
  return expected === undefined ? bytes * 8 >= MIN_RSA_BITS && bytes * 8 <= MAX_RSA_BITS : bytes === expected
}
