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
 * Revokes tokens at an upstream (RFC 7009 §2.1): the refresh token, which includes the others of its grant, or else
 * the access token. Throws `identity_provider_unavailable` and `identity_provider_error`.
 */
export function createRevocation(client: UpstreamClient, { revocations }: Connections, { clock }: UpstreamDeps) {
  const post = createClientPost(client, revocations, WHERE)
  return async (endpoint: RevocationEndpoint, tokens: UpstreamTokenSet): Promise<void> => {
    const { refreshToken, accessToken } = tokens
    const hint = refreshToken === undefined ? 'access_token' : 'refresh_token'
    const form = [
      ['token', (refreshToken ?? accessToken).reveal()],
      ['token_type_hint', hint],
    ] as const
    const response = await post({ ...endpoint, form })
    expectOk(response, { url: endpoint.to, service: serviceOf(WHERE), nowMs: clock.now() })
  }
}
