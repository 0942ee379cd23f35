import { findKey, MAX_RSA_BITS, MIN_RSA_BITS, type VerificationKey } from '../oauth/index.ts'
import type { UnverifiedJwt } from './token-shape.ts'

/**
 * The algorithms that are accepted (decisions §2.3). `none` and HMAC are not in it and never will be: a shared secret
 * cannot be published in a JWKS. `EdDSA` means Ed25519; jose has no Ed448.
 */
export const ALGORITHMS: ReadonlySet<string> = new Set(
  'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' '),
)

/** What a JWT's header says about its signature, after the checks that need no key. */
export interface SignatureHeader {
  readonly alg: string
  readonly kid: string | undefined
}

/** `unknown`: no key fits, or several do and nothing says which. */
export type SignatureCheck = 'good' | 'wrong' | 'unknown_key' | 'ambiguous_key'

/**
 * `typ` values that say what a token is (RFC 8725 §3.11): every profile of JWT but the one of access tokens, and JOSE, which
 * is no JWT. A logout, DPoP or event token of the same issuer opens nothing.
 */
const OTHER_KIND = /^(?!(?:application\/)?at\+jwt$)(?:.*\+jwt|(?:application\/)?jose(?:\+json)?)$/i

/** Reads `alg` and `kid`; a string says what is wrong. No extension is understood, so any `crit` is (RFC 7515 §4.1.11). */
export function readHeader(jwt: UnverifiedJwt): SignatureHeader | string {
  const { alg, kid, crit, typ } = jwt.header
  if (typ !== undefined && (typeof typ !== 'string' || OTHER_KIND.test(typ)))
    return 'typ says that it is no access token'
  if (typeof alg !== 'string' || !ALGORITHMS.has(alg)) return 'alg is not accepted'
  if (crit !== undefined) return 'crit names an extension that is not understood'
  if (kid !== undefined && typeof kid !== 'string') return 'kid is not a string'
  return { alg, kid }
}

/** Verifies the signature of a compact JWS with the key of `keys` that its `header` names. */
export async function checkSignature(
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

/** Bytes of a signature: RFC 7518 §3.4, RFC 8037 §3.1; those of RSA have the length of the modulus. */
const SIGNATURE_BYTES: Readonly<Record<string, number>> = { ES256: 64, ES384: 96, ES512: 132, EdDSA: 64, Ed25519: 64 }

/** Whether signatures of an algorithm have so many bytes. */
export function isSignatureLong(alg: string, bytes: number): boolean {
  const expected = SIGNATURE_BYTES[alg]
  return expected === undefined ? bytes * 8 >= MIN_RSA_BITS && bytes * 8 <= MAX_RSA_BITS : bytes === expected
}
