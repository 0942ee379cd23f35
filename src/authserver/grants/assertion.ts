import { type Claims, RULES } from '../../core/index.ts'
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

/** A JWT that somebody else made for us (RFC 7523 §3); nothing in it is verified yet. */
export interface Assertion {
  readonly token: string
  readonly header: SignatureHeader
  /** Lower case, without `application/` (RFC 7515 §4.1.9); undefined when absent. */
  readonly type: string | undefined
  readonly claims: Claims
}

/** Characters of an assertion; whoever needs more has put a directory into it. */
const MOST_ASSERTION = 16 * 1024
const MOST_SUBJECT = 1_024
const MOST_ID = 1_024

/** Reads an assertion as far as that needs no key. Throws `RefusedAssertion`. */
export function readAssertion(token: string): Assertion {
  if (token.length > MOST_ASSERTION) throw new RefusedAssertion(`it has more than ${MOST_ASSERTION} characters`)
  const shape = shapeOf(token)
  if (shape.kind !== 'jwt') throw new RefusedAssertion('it is no signed JWT of distinct names')
  const { alg, kid, typ, crit } = shape.jwt.header
  if (typeof alg !== 'string' || !ALGORITHMS.has(alg)) throw new RefusedAssertion('alg is not accepted')
  if (crit !== undefined) throw new RefusedAssertion('crit names an extension that is not understood')
  if (kid !== undefined && typeof kid !== 'string') throw new RefusedAssertion('kid is not a string')
  if (typ !== undefined && typeof typ !== 'string') throw new RefusedAssertion('typ is not a string')
  const type = typ === undefined ? undefined : jwtTypeOf(typ)
  return { token, header: { alg, kid }, type, claims: shape.jwt.payload }
}

/** Whether it says that it is an identity assertion; whoever shows one is a client that we know. */
export function isIdentityAssertion(token: string): boolean {
  const shape = token.length > MOST_ASSERTION ? undefined : shapeOf(token)
  if (shape?.kind !== 'jwt') return false
  const { typ } = shape.jwt.header
  return typeof typ === 'string' && jwtTypeOf(typ) === ID_JAG
}

/** The one audience, as text or as an array of one: what is for somebody else too could be shown here by them. */
export const audienceIn = ({ aud }: Claims): unknown =>
  Array.isArray(aud) && aud.length === 1 ? (aud as readonly unknown[])[0] : aud

/** `aud` is the one audience. Throws `RefusedAssertion`. */
export function checkAudience(claims: Claims, audience: string): void {
  if (audienceIn(claims) !== audience) throw new RefusedAssertion('aud is not our issuer alone')
}

/** Checks `exp` and, where they are there, `nbf` and `iat`, and that it ends within `mostMs`. Throws `RefusedAssertion`. */
export function checkTimes({ exp, nbf, iat }: Claims, nowMs: number, mostMs: number): void {
  const now = nowMs / 1_000
  if (typeof exp !== 'number') throw new RefusedAssertion('exp is no number')
  if (now - EXPIRED_SECONDS >= exp) throw new RefusedAssertion('it has expired')
  if (exp > now + mostMs / 1_000 + EARLY_SECONDS)
    throw new RefusedAssertion(`exp is more than ${mostMs / 60_000} minutes ahead`)
  for (const [name, value] of Object.entries({ nbf, iat })) {
    if (value === undefined) continue
    if (typeof value !== 'number') throw new RefusedAssertion(`${name} is no number`)
    if (value > now + EARLY_SECONDS) throw new RefusedAssertion(`${name} is still to come`)
  }
}

/** It says when it was made, and was not made for longer than `mostMs`; times are checked by now. Throws `RefusedAssertion`. */
export function checkLife({ exp, iat }: Claims, mostMs: number): void {
  if (typeof iat !== 'number') throw new RefusedAssertion('iat is missing')
  if (typeof exp !== 'number' || (exp - iat) * 1_000 > mostMs)
    throw new RefusedAssertion(`it was made for more than ${mostMs / 60_000} minutes`)
}

/** The user or program that it is about. Throws `RefusedAssertion`. */
export function subjectIn({ sub }: Claims): string {
  if (typeof sub !== 'string' || sub === '' || sub.length > MOST_SUBJECT)
    throw new RefusedAssertion(`sub is no text of 1 to ${MOST_SUBJECT} characters`)
  return sub
}

/** `jti` is there; within its life an assertion may be shown again. Throws `RefusedAssertion`. */
export function checkIdentifier({ jti }: Claims): void {
  if (typeof jti !== 'string' || jti === '' || jti.length > MOST_ID)
    throw new RefusedAssertion(`jti is no text of 1 to ${MOST_ID} characters`)
}

/** What would make it good for less than a bearer token of ours is: a key that has to be shown, or rights finer than scopes. */
export function checkUnbound({ cnf, authorization_details: details }: Claims): void {
  if (cnf !== undefined) throw new RefusedAssertion('it is bound to a key (cnf), which nobody can show here')
  if (details !== undefined) throw new RefusedAssertion('authorization_details are not understood')
}

/** The last look, because it costs: its signature. Throws `RefusedAssertion`, and `Failure` while there are no keys. */
export async function checkSigned({ token, header }: Assertion, keys: KeyStore): Promise<void> {
  const check = await verifySignature(token, header, keys)
  if (check !== 'good') throw new RefusedAssertion(RULES[SIGNATURE_RULES[check]].detail)
}
