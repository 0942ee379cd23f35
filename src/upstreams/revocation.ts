import type { Secret } from '../core/index.ts'
import { type ClientEndpoint, expectOk, serviceOf } from '../oauth/index.ts'
import type { Connections } from './connection.ts'
import type { UpstreamDeps } from './deps.ts'
import { createClientPost } from './token-endpoint.ts'
import type { UpstreamTokenSet } from './upstream.ts'
import type { UpstreamClient } from './upstream-client.ts'

const WHERE = 'revocation endpoint'

/** The revocation endpoint and its client authentication. */
export interface RevocationEndpoint extends ClientEndpoint {
  readonly to: string
  readonly secretInBody: boolean
}

/**
 * Revokes tokens at an upstream (RFC 7009 §2.1): the refresh token, then the access token. Throws
 * `identity_provider_unavailable` and `identity_provider_error`.
 */
export function createRevocation(client: UpstreamClient, { revocations }: Connections, { clock }: UpstreamDeps) {
  const post = createClientPost(client, revocations, WHERE)
  const revoke = async (endpoint: RevocationEndpoint, token: Secret, hint: string): Promise<void> => {
    const form = [
      ['token', token.reveal()],
      ['token_type_hint', hint],
    ] as const
    const response = await post({ ...endpoint, form })
    expectOk(response, { url: endpoint.to, service: serviceOf(WHERE), nowMs: clock.now() })
  }
  return async (endpoint: RevocationEndpoint, { refreshToken, accessToken }: UpstreamTokenSet): Promise<void> => {
    if (refreshToken === undefined) return revoke(endpoint, accessToken, 'access_token')
    await revoke(endpoint, refreshToken, 'refresh_token')
    // Servers that revoke access tokens with the refresh token may reject them here (unsupported_token_type).
    await revoke(endpoint, accessToken, 'access_token').catch(() => undefined)
  }
}
