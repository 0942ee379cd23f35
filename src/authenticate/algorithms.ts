import { constants, type KeyObject, verify } from 'node:crypto'

/** One signature algorithm of RFC 7518 §3.1 or RFC 8037 §3.1. */
export interface SignatureAlgorithm {
  readonly keyType: 'RSA' | 'EC' | 'OKP'
  /** Curves that go with it; a key on another one does not fit. Undefined for RSA. */
  readonly curves: readonly string[] | undefined
  readonly verify: (key: KeyObject, input: Buffer, signature: Buffer) => boolean
}

const rsa = (digest: string): SignatureAlgorithm => ({
  keyType: 'RSA',
  curves: undefined,
  verify: (key, input, signature) => verify(digest, input, key, signature),
})

/** The salt is as long as the digest (RFC 7518 §3.5); other lengths are refused, not guessed. */
const rsaPss = (digest: string): SignatureAlgorithm => ({
  keyType: 'RSA',
  curves: undefined,
  verify: (key, input, signature) =>
    verify(
      digest,
      input,
      { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST },
      signature,
    ),
})

/** R and S side by side (RFC 7518 §3.4), each `bytes` long; DER signatures are refused by their length. */
const ecdsa = (digest: string, curve: string, bytes: number): SignatureAlgorithm => ({
  keyType: 'EC',
  curves: [curve],
  verify: (key, input, signature) =>
    signature.length === 2 * bytes && verify(digest, input, { key, dsaEncoding: 'ieee-p1363' }, signature),
})

const eddsa = (...curves: readonly string[]): SignatureAlgorithm => ({
  keyType: 'OKP',
  curves,
  verify: (key, input, signature) => verify(null, input, key, signature),
})

/**
 * The algorithms that are accepted (decisions §2.3). `none` and HMAC are not in it and never will be: a shared secret
 * cannot be published in a JWKS. `Ed25519` is EdDSA on that curve by its own name (RFC 9864).
 */
export const ALGORITHMS: ReadonlyMap<string, SignatureAlgorithm> = new Map([
  ['RS256', rsa('sha256')],
  ['RS384', rsa('sha384')],
  ['RS512', rsa('sha512')],
  ['PS256', rsaPss('sha256')],
  ['PS384', rsaPss('sha384')],
  ['PS512', rsaPss('sha512')],
  ['ES256', ecdsa('sha256', 'P-256', 32)],
  ['ES384', ecdsa('sha384', 'P-384', 48)],
  ['ES512', ecdsa('sha512', 'P-521', 66)],
  ['EdDSA', eddsa('Ed25519', 'Ed448')],
  ['Ed25519', eddsa('Ed25519')],
])
