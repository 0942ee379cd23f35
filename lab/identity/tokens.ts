import { randomBytes, randomUUID } from 'node:crypto'
import { createLocalJWKSet, type JWTPayload, jwtVerify } from 'jose'
import type { Clock } from '../../src/core/index.ts'
import type { SigningAlgorithm, SigningKeys } from './keys.ts'

/** Every token of the lab is also meant for this audience, whatever resource it was asked for. */
export const LAB_AUDIENCE = 'extauth-lab'

export interface TokenRequest {
  readonly subject: string
  readonly audience: readonly string[]
  /** Lifetime in seconds; zero or less gives a token that has already expired. */
  readonly ttlSeconds: number
  readonly claims?: Readonly<Record<string, unknown>>
  readonly opaque?: boolean
  readonly alg?: SigningAlgorithm
  /** Default `at+jwt`. */
  readonly typ?: 'at+jwt' | 'JWT'
  /** Marks it as issued by a token exchange, so that `revoking` finds it. */
  readonly exchanged?: boolean
}

export interface Tokens {
  issue(request: TokenRequest): Promise<string>
  /** Claims of a valid token of this provider: signature, issuer, expiry, not revoked. Undefined for all others. */
  verify(token: string): Promise<JWTPayload | undefined>
  readonly isRevoked: (jti: string) => boolean
  /** Takes back every token that an exchange has issued so far. */
  revokeExchanged(): void
  /** Takes back one token; true when it was ours and good. */
  revoke(token: string): Promise<boolean>
}

const MAX_KEPT = 100_000

/** Issues JWTs (RFC 9068 `at+jwt`) and opaque tokens, and remembers what it needs to judge them later. */
export function createTokens(issuer: () => string, keys: SigningKeys, clock: Clock): Tokens {
  const opaque = new Map<string, JWTPayload>()
  const exchanged = new Set<string>()
  const revoked = new Set<string>()

  function bound(kept: Map<string, unknown> | Set<string>): void {
    const oldest = kept.size > MAX_KEPT ? kept.keys().next().value : undefined
    if (oldest !== undefined) kept.delete(oldest)
  }

  const tokens: Tokens = {
    async issue({ subject, audience, ttlSeconds, claims = {}, alg, typ = 'at+jwt', ...flags }) {
      const now = Math.floor(clock.now() / 1000)
      const jti = randomUUID()
      const payload: JWTPayload = {
        ...claims,
        iss: issuer(),
        sub: subject,
        aud: audience.length === 1 ? (audience[0] ?? '') : [...audience],
        iat: Math.min(now, now + ttlSeconds),
        exp: now + ttlSeconds,
        jti,
      }
      if (flags.exchanged === true) {
        exchanged.add(jti)
        bound(exchanged)
      }
      if (flags.opaque !== true) return keys.sign(payload, typ, alg)
      const token = randomBytes(32).toString('base64url')
      opaque.set(token, payload)
      bound(opaque)
      return token
    },
    async verify(token) {
      const payload = opaque.get(token) ?? (await verifyJwt(token))
      if (payload === undefined || typeof payload.jti !== 'string' || revoked.has(payload.jti)) return undefined
      return (payload.exp ?? 0) * 1000 > clock.now() ? payload : undefined
    },
    isRevoked: (jti) => revoked.has(jti),
    revokeExchanged() {
      for (const jti of exchanged) revoked.add(jti)
      exchanged.clear()
    },
    async revoke(token) {
      const payload = await tokens.verify(token)
      if (typeof payload?.jti !== 'string') return false
      revoked.add(payload.jti)
      bound(revoked)
      return true
    },
  }

  async function verifyJwt(token: string): Promise<JWTPayload | undefined> {
    try {
      const { payload } = await jwtVerify(token, createLocalJWKSet(keys.published()), {
        issuer: issuer(),
        algorithms: ['RS256', 'ES256'],
        requiredClaims: ['sub', 'exp', 'jti'],
        currentDate: new Date(clock.now()),
      })
      return payload
    } catch {
      return undefined
    }
  }
  return tokens
}
