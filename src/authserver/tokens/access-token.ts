import { randomBytes } from 'node:crypto'
import { SignJWT } from 'jose'
import { type Claims, type EpochMs, GRANT_CLAIM, type GrantWithoutLogin } from '../../core/index.ts'
import type { SigningKey } from '../../signing/index.ts'

/** The contents of an access token (RFC 9068 §2.2, authserver.md §4.7). */
export interface AccessTokenInput {
  readonly issuer: string
  readonly subject: string
  /** The resource's URL. */
  readonly audience: string
  readonly clientId: string
  readonly scope: readonly string[]
  /** When the user logged in; undefined when unknown, or without a user. */
  readonly authenticatedAtMs: EpochMs | undefined
  /** Its session, or the grant that issued it without one. */
  readonly tsid?: string
  readonly grant?: GrantWithoutLogin
  readonly claims: Claims
  readonly nowMs: EpochMs
  readonly lifespanMs: number
}

/** Signs an access token with the key ring's first key. */
export async function signAccessToken(input: AccessTokenInput, key: SigningKey): Promise<string> {
  const seconds = (ms: number): number => Math.floor(ms / 1000)
  const { scope, nowMs } = input
  return new SignJWT({
    ...input.claims,
    iss: input.issuer,
    sub: input.subject,
    aud: input.audience,
    iat: seconds(nowMs),
    exp: seconds(nowMs + input.lifespanMs),
    jti: randomBytes(16).toString('base64url'),
    client_id: input.clientId,
    ...(scope.length === 0 ? {} : { scope: scope.join(' ') }),
    ...(input.authenticatedAtMs === undefined ? {} : { auth_time: seconds(input.authenticatedAtMs) }),
    ...(input.tsid === undefined ? {} : { tsid: input.tsid }),
    ...(input.grant === undefined ? {} : { [GRANT_CLAIM]: input.grant }),
  })
    .setProtectedHeader({ alg: key.alg, kid: key.kid, typ: 'at+jwt' })
    .sign(key.privateKey)
}
