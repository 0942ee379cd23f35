import type { RuleCode } from '../core/index.ts'
import { ALGORITHMS, type SignatureHeader, type UnverifiedJwt } from '../oauth/index.ts'

/**
 * `typ` values that say what a token is (RFC 8725 §3.11): every profile of JWT but the one of access tokens, and JOSE, which
 * is no JWT. A logout, DPoP or event token of the same issuer opens nothing.
 */
const OTHER_KIND = /^(?!(?:application\/)?at\+jwt$)(?:.*\+jwt|(?:application\/)?jose(?:\+json)?)$/i

/** Reads `alg` and `kid`; a rule says what is wrong. No extension is understood, so any `crit` is (RFC 7515 §4.1.11). */
export function readHeader(jwt: UnverifiedJwt): SignatureHeader | RuleCode {
  const { alg, kid, crit, typ } = jwt.header
  if (typ !== undefined && (typeof typ !== 'string' || OTHER_KIND.test(typ))) return 'typ_other'
  if (typeof alg !== 'string' || !ALGORITHMS.has(alg)) return 'alg_refused'
  if (crit !== undefined) return 'crit_unknown'
  if (kid !== undefined && typeof kid !== 'string') return 'kid_malformed'
  return { alg, kid }
}
