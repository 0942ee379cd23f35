import { Failure, type AuthenticatedCaller, type Caller } from '../../../src/core/index.ts'
import { isUnder, parseBearer } from '../../../src/http/index.ts'
import type { AccessPolicy } from '../../../src/registry/index.ts'

export const RESOURCE_METADATA = 'https://registry.example.com/.well-known/oauth-protected-resource'

const alice: AuthenticatedCaller = {
  kind: 'authenticated',
  provider: 'main',
  issuer: 'https://issuer.example',
  subject: 'alice@example.com',
  identity: 'sub:alice@example.com',
  claims: {},
  expiresAtMs: undefined,
  tokenDigest: 'digest',
  format: 'opaque',
}

/** Accepts `good` at once and `later` after a turn; every other word is the failure that it names. */
function check(authorization: readonly string[]): Caller | Promise<Caller> {
  const token = parseBearer(authorization)
  switch (token) {
    case undefined:
      throw new Failure('missing_token')
    case 'good':
      return alice
    case 'later':
      return Promise.resolve(alice)
    case 'expired':
      return Promise.reject(new Failure('expired_token', { challenge: { error: 'invalid_token' } }))
    case 'outage':
      return Promise.reject(new Failure('identity_provider_unavailable', { retryAfterSeconds: 7 }))
    case 'bug':
      return Promise.reject(new Error('secret text'))
    default:
      throw new Failure('invalid_token', { challenge: { error: 'invalid_token' } })
  }
}

export const protectedBy = (publicPaths: readonly string[] = []): AccessPolicy => ({
  mode: 'oauth',
  tokens: { authenticate: check },
  peerOf: ({ socket }) => socket.remoteAddress ?? '',
  realm: 'mcp-registry',
  resourceMetadata: RESOURCE_METADATA,
  isPublicPath: (path) => publicPaths.some((open) => isUnder(open, path)),
})
