import { createHash } from 'node:crypto'
import { type Claims, type ClaimValue, type EpochMs, RULES, type Secret } from '../core/index.ts'
import {
  ALGORITHMS,
  type ClockTolerance,
  type KeyStore,
  shapeOf,
  SIGNATURE_RULES,
  verifySignature,
} from '../oauth/index.ts'
import { unusable } from './connection.ts'

/** Checks of an ID token besides its signature (OpenID Connect Core §3.1.3.7). */
export interface IdTokenRules {
  readonly issuer: string
  readonly clientId: string
  /** Undefined at a refresh, whose ID token need not have one (§12.2). */
  readonly nonce: string | undefined
  /** The access token issued with it, for `at_hash`. */
  readonly accessToken: Secret
  /** The provider's signature algorithms. */
  readonly algorithms: ReadonlySet<string>
  readonly nowMs: EpochMs
  /** The claim that identifies the user. */
  readonly subjectClaim: string
  readonly tolerance: ClockTolerance
}

export interface VerifiedIdToken {
  readonly sub: string
  /** The value of that claim. */
  readonly subject: string
  readonly claims: Claims
  readonly expiresAtMs: EpochMs
}

const MAX_SUBJECT_LENGTH = 1024

const refused = (detail: string) => unusable(`ID token: ${detail}`)

const notVerified = (why: string) => refused(`not verified (${why})`)

/** The claims, after verifying the signature. Throws while the keys are unavailable. */
async function verified(
  token: Secret,
  keys: KeyStore,
  algorithms: ReadonlySet<string>,
): Promise<{ readonly claims: Claims; readonly alg: string }> {
  const shape = shapeOf(token.reveal())
  if (shape.kind !== 'jwt') throw notVerified('it is not a JWT with unique field names')
  const { alg, kid, crit } = shape.jwt.header
  if (typeof alg !== 'string' || !ALGORITHMS.has(alg) || !algorithms.has(alg)) throw notVerified('alg is not accepted')
  if (crit !== undefined) throw notVerified('crit names an unsupported extension')
  if (kid !== undefined && typeof kid !== 'string') throw notVerified('kid is not a string')
  const check = await verifySignature(token.reveal(), { alg, kid }, keys)
  if (check !== 'good') throw notVerified(RULES[SIGNATURE_RULES[check]].detail)
  return { claims: shape.jwt.payload, alg }
}

/** Left half of the signature algorithm's digest (OpenID Connect Core §3.1.3.6). */
function halfHash(accessToken: Secret, alg: string): string {
  const bits = /^(?:RS|PS|ES)(256|384|512)$/.exec(alg)?.[1] ?? '512'
  const digest = createHash(`sha${bits}`).update(accessToken.reveal()).digest()
  return digest.subarray(0, digest.length / 2).toString('base64url')
}

function checkAudience({ aud, azp }: Claims, clientId: string): void {
  const audiences: readonly ClaimValue[] = Array.isArray(aud) ? (aud as readonly ClaimValue[]) : [aud ?? null]
  if (!audiences.includes(clientId)) throw refused('aud is not the client id')
  if (azp !== undefined && azp !== clientId) throw refused('azp is a different client')
}

function checkTimes({ exp, nbf, iat }: Claims, { nowMs, tolerance }: IdTokenRules): number {
  const now = nowMs / 1000
  if (typeof exp !== 'number' || typeof iat !== 'number') throw refused('exp or iat is missing')
  const latest = now + tolerance.earlySeconds
  if (exp + tolerance.expiredSeconds <= now) throw refused('it has expired')
  if (nbf !== undefined && !(typeof nbf === 'number' && nbf <= latest)) throw refused('nbf is in the future')
  if (iat > latest) throw refused('iat is in the future')
  return exp * 1000
}

/** A user identifier: strings only, so that distinct claims can't yield the same identifier. */
function nameIn(claims: Claims, claim: string): string {
  const name = Object.hasOwn(claims, claim) ? claims[claim] : undefined
  if (typeof name === 'string' && name.trim() !== '' && name.length <= MAX_SUBJECT_LENGTH) return name
  throw refused(`${claim} is missing`)
}

/** Verifies an ID token. Throws `identity_provider_error` with the violated rule, and the errors of `keys`. */
export async function verifyIdToken(token: Secret, keys: KeyStore, rules: IdTokenRules): Promise<VerifiedIdToken> {
  const { claims, alg } = await verified(token, keys, rules.algorithms)
  const { iss, nonce, at_hash: hash } = claims
  if (iss !== rules.issuer) throw refused('iss is a different issuer')
  checkAudience(claims, rules.clientId)
  const expiresAtMs = checkTimes(claims, rules)
  if (rules.nonce !== undefined && nonce !== rules.nonce) throw refused('nonce differs from the one sent')
  if (hash !== undefined && hash !== halfHash(rules.accessToken, alg))
    throw refused('at_hash belongs to a different token')
  // `sub` is always required (§2), and user info must repeat it.
  const own = nameIn(claims, 'sub')
  const { subjectClaim } = rules
  return { sub: own, subject: subjectClaim === 'sub' ? own : nameIn(claims, subjectClaim), claims, expiresAtMs }
}
