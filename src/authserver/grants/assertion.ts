import { type Claims, type EpochMs, RULES } from '../../core/index.ts'
import {
  ALGORITHMS,
  ID_JAG,
  jwtTypeOf,
  type KeyStore,
  shapeOf,
  type SignatureHeader,
  SIGNATURE_RULES,
  verifySignature,
} from '../../oauth/index.ts'
import { EARLY_SECONDS, EXPIRED_SECONDS } from '../lifespans.ts'
import { RefusedAssertion } from '../oauth-error.ts'

/** A parsed JWT assertion (RFC 7523 §3), not yet verified. */
export interface Assertion {
  readonly token: string
  readonly header: SignatureHeader
  /** Lower case, without `application/` (RFC 7515 §4.1.9); undefined when absent. */
  readonly type: string | undefined
  readonly claims: Claims
}

/** Size limit of an assertion in characters. */
const MOST_ASSERTION = 16 * 1024
const MOST_SUBJECT = 1_024
const MOST_ID = 1_024

/** Parses an assertion without verifying its signature. Throws `RefusedAssertion`. */
export function readAssertion(token: string): Assertion {
  if (token.length > MOST_ASSERTION) throw new RefusedAssertion(`it has more than ${MOST_ASSERTION} characters`)
  const shape = shapeOf(token)
  if (shape.kind !== 'jwt') throw new RefusedAssertion('it is not a signed JWT with unique field names')
  const { alg, kid, typ, crit } = shape.jwt.header
  if (typeof alg !== 'string' || !ALGORITHMS.has(alg)) throw new RefusedAssertion('alg is not accepted')
  if (crit !== undefined) throw new RefusedAssertion('crit names an unsupported extension')
  if (kid !== undefined && typeof kid !== 'string') throw new RefusedAssertion('kid is not a string')
  if (typ !== undefined && typeof typ !== 'string') throw new RefusedAssertion('typ is not a string')
  const type = typ === undefined ? undefined : jwtTypeOf(typ)
  return { token, header: { alg, kid }, type, claims: shape.jwt.payload }
}

/** Whether it declares itself an identity assertion, which known clients present. */
export function isIdentityAssertion(token: string): boolean {
  const shape = token.length > MOST_ASSERTION ? undefined : shapeOf(token)
  if (shape?.kind !== 'jwt') return false
  const { typ } = shape.jwt.header
  return typeof typ === 'string' && jwtTypeOf(typ) === ID_JAG
}

/**
 * The single audience, a string or an array of one. An assertion with further audiences could be replayed here by
 * them.
 */
export const audienceIn = ({ aud }: Claims): unknown =>
  Array.isArray(aud) && aud.length === 1 ? (aud as readonly unknown[])[0] : aud

/** Requires `audience` as the only `aud`. Throws `RefusedAssertion`. */
export function checkAudience(claims: Claims, audience: string): void {
  if (audienceIn(claims) !== audience) throw new RefusedAssertion('aud must be the issuer of this server only')
}

/** Checks `exp` and, if present, `nbf` and `iat`, and that it expires within `mostMs`. Throws `RefusedAssertion`. */
export function checkTimes({ exp, nbf, iat }: Claims, nowMs: EpochMs, mostMs: number): void {
  const now = nowMs / 1_000
  if (typeof exp !== 'number') throw new RefusedAssertion('exp is not a number')
  if (now - EXPIRED_SECONDS >= exp) throw new RefusedAssertion('it has expired')
  if (exp > now + mostMs / 1_000 + EARLY_SECONDS)
    throw new RefusedAssertion(`exp is more than ${mostMs / 60_000} minutes ahead`)
  for (const [name, value] of Object.entries({ nbf, iat })) {
    if (value === undefined) continue
    if (typeof value !== 'number') throw new RefusedAssertion(`${name} is not a number`)
    if (value > now + EARLY_SECONDS) throw new RefusedAssertion(`${name} is in the future`)
  }
}

/** Requires `iat` and a lifetime of at most `mostMs`; times were checked before. Throws `RefusedAssertion`. */
export function checkLife({ exp, iat }: Claims, mostMs: number): void {
  if (typeof iat !== 'number') throw new RefusedAssertion('iat is missing')
  if (typeof exp !== 'number' || (exp - iat) * 1_000 > mostMs)
    throw new RefusedAssertion(`its lifetime is more than ${mostMs / 60_000} minutes`)
}

/** The subject, a user or program. Throws `RefusedAssertion`. */
export function subjectIn({ sub }: Claims): string {
  if (typeof sub !== 'string' || sub === '' || sub.length > MOST_SUBJECT)
    throw new RefusedAssertion(`sub is not a string of 1 to ${MOST_SUBJECT} characters`)
  return sub
}

/** Requires `jti`; an assertion may be reused within its lifetime. Throws `RefusedAssertion`. */
export function checkIdentifier({ jti }: Claims): void {
  if (typeof jti !== 'string' || jti === '' || jti.length > MOST_ID)
    throw new RefusedAssertion(`jti is not a string of 1 to ${MOST_ID} characters`)
}

/** Rejects assertions that restrict more than a bearer token can: key binding, or permissions finer than scopes. */
export function checkUnbound({ cnf, authorization_details: details }: Claims): void {
  if (cnf !== undefined) throw new RefusedAssertion('it is bound to a key (cnf), which is not supported')
  if (details !== undefined) throw new RefusedAssertion('authorization_details are not supported')
}

/**
 * Verifies the signature, last because it is expensive. Throws `RefusedAssertion`, and `Failure` while there are no
 * keys.
 */
export async function checkSigned({ token, header }: Assertion, keys: KeyStore): Promise<void> {
  const check = await verifySignature(token, header, keys)
  if (check !== 'good') throw new RefusedAssertion(RULES[SIGNATURE_RULES[check]].detail)
}
