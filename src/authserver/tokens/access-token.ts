import { randomBytes } from 'node:crypto'
import { SignJWT } from 'jose'
import type { Claims } from '../../core/index.ts'
import type { SigningKey } from '../keys/signing-key.ts'

/** What an access token says (RFC 9068 §2.2, authserver.md §4.7). */
export interface AccessTokenInput {
  readonly issuer: string
  readonly subject: string
  /** The resource's URL. */
  readonly audience: string
  readonly clientId: string
  readonly scope: readonly string[]
  /** When the user logged in, milliseconds since the epoch. */
  readonly authenticatedAtMs: number
  readonly tsid: string
  readonly claims: Claims
  readonly nowMs: number
  readonly lifespanMs: number
}

/** Signs an access token with the ring's first key. */
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
    auth_time: seconds(input.authenticatedAtMs),
    tsid: input.tsid,
  })
    .setProtectedHeader({ alg: key.alg, kid: key.kid, typ: 'at+jwt' })
    .sign(key.privateKey)
}
