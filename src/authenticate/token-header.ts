import { ALGORITHMS, type SignatureHeader, type UnverifiedJwt } from '../oauth/index.ts'

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
