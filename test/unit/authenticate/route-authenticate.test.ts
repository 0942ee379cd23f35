import type { IncomingMessage, ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { createAuthenticator, createRouteAuthenticate } from '../../../src/authenticate/index.ts'
import { ANONYMOUS, type ClaimValue, type Matched } from '../../../src/core/index.ts'
import { challengeFor } from '../../../src/http/index.ts'
import { rsaKey, signed } from '../../support/authenticate/keys.ts'
import { AUDIENCE, bearer, createWorld, failureOf, ISSUER, provider } from '../../support/authenticate/world.ts'

const key = await rsaKey()
const world = createWorld()
world.serveKeys([key])
const authenticator = world.authenticator([provider()])
const anonymous = createAuthenticator(
  { mode: 'anonymous' },
  {
    ...world,
    outbound: () => {
      throw new Error('unexpected request to a provider')
    },
  },
)

/** As much of a matched request as this stage looks at. */
const matched = (authorization: readonly string[], path = '/', query = ''): Matched =>
  ({ authorization, inbound: { path, query, request: {} as IncomingMessage, response: {} as ServerResponse } }) as never

const token = (claims: Record<string, ClaimValue>) =>
  signed(key, { alg: 'RS256' }, { iss: ISSUER, aud: AUDIENCE, sub: 'alice', exp: world.nowSeconds() + 60, ...claims })

describe('the authenticate stage', () => {
  it('returns the request with its caller, synchronously when the caller is cached', async () => {
    const authenticate = createRouteAuthenticate(authenticator, { requiredScopes: [] })
    const request = matched(bearer(await token({})))
    const known = await authenticate(request)
    expect(known.matched).toBe(request)
    expect(known.caller).toMatchObject({ kind: 'authenticated', subject: 'alice' })
    const again = authenticate(request)
    expect(again).not.toBeInstanceOf(Promise)
    expect(again).toMatchObject({ caller: known.caller })
  })

  it('accepts all callers in mode anonymous, without reading credentials', async () => {
    const authenticate = createRouteAuthenticate(anonymous, { requiredScopes: [] })
    for (const values of [[], ['Bearer x'], ['nonsense'], ['a', 'b']])
      expect((await authenticate(matched(values))).caller).toBe(ANONYMOUS)
    await anonymous.start()
    await anonymous.close()
  })

  it('cannot be made to require scopes of anonymous callers', () => {
    expect(() => createRouteAuthenticate(anonymous, { requiredScopes: ['a'] })).toThrow('config_error')
  })

  it('leaves public paths open and nothing else', async () => {
    const authenticate = createRouteAuthenticate(authenticator, { requiredScopes: ['a'], publicPaths: ['/docs'] })
    expect((await authenticate(matched([], '/docs/x'))).caller).toBe(ANONYMOUS)
    expect((await failureOf(() => authenticate(matched([], '/docsx')))).code).toBe('missing_token')
  })
})

it('another scheme than Bearer is named, and the challenge has no error (RFC 6750 §3.1)', async () => {
  const authenticate = createRouteAuthenticate(authenticator, { requiredScopes: [] })
  const failure = await failureOf(() => authenticate(matched(['Basic dXNlcjpwYXNz'])))
  expect(failure).toMatchObject({ code: 'missing_token', status: 401 })
  expect(failure.sentence).toBe(
    'This resource needs an access token; the Authorization header has the scheme Basic, expected Bearer.',
  )
  const challenge = challengeFor(failure, { realm: 'mcp', resourceMetadata: undefined, requiredScopes: [] })
  expect(challenge).toBe('Bearer realm="mcp"')
})

describe('tokens that are bound to a key', () => {
  it.each([{ jkt: 'x' }, { 'x5t#S256': 'x' }, {}])('are refused, whatever they are bound to: %j', async (cnf) => {
    const authenticate = createRouteAuthenticate(authenticator, { requiredScopes: [] })
    const request = matched(bearer(await token({ cnf })))
    const refusal = {
      code: 'invalid_token',
      status: 401,
      detail: 'sender-constrained tokens are not supported',
      challenge: { error: 'invalid_token' },
    }
    expect(await failureOf(() => authenticate(request))).toMatchObject(refusal)
    // Cached by now.
    expect(await failureOf(() => authenticate(request))).toMatchObject(refusal)
  })

  it('are accepted where the route allows it', async () => {
    const authenticate = createRouteAuthenticate(authenticator, { requiredScopes: [], allowBoundTokens: true })
    expect((await authenticate(matched(bearer(await token({ cnf: { jkt: 'y' } }))))).caller).toMatchObject({
      subject: 'alice',
    })
  })
})

describe('requiredScopes', () => {
  const authenticate = createRouteAuthenticate(authenticator, { requiredScopes: ['mcp:read', 'mcp:write'] })

  it.each<[string, Record<string, ClaimValue>]>([
    ['a scope text', { scope: 'mcp:write mcp:read other' }],
    ['a scope array', { scope: ['mcp:read', 'mcp:write'] }],
    ['an scp text', { scp: 'mcp:read mcp:write' }],
    ['an scp array', { scp: ['mcp:read', 'mcp:write'] }],
    ['both', { scope: 'mcp:read', scp: ['mcp:write'] }],
  ])('are found in %s', async (_name, claims) => {
    const known = await authenticate(matched(bearer(await token(claims))))
    expect(known.caller.kind).toBe('authenticated')
  })

  it.each<[string, Record<string, ClaimValue>]>([
    ['no claim', {}],
    ['one of them', { scope: 'mcp:read' }],
    ['an empty text', { scope: '' }],
    ['one text with both and a comma', { scope: 'mcp:read,mcp:write' }],
    ['an array with both in one text', { scp: ['mcp:read mcp:write'] }],
    ['another case', { scope: 'MCP:read mcp:write' }],
    ['something that only begins so', { scope: 'mcp:readonly mcp:write' }],
    ['an object', { scope: { 'mcp:read': true, 'mcp:write': true } }],
    ['roles', { roles: ['mcp:read', 'mcp:write'] }],
  ])('are missed in %s: 403, with the scopes in the challenge', async (_name, claims) => {
    const request = matched(bearer(await token(claims)))
    for (let count = 0; count < 2; count++) {
      const failure = await failureOf(() => authenticate(request))
      expect(failure).toMatchObject({ code: 'insufficient_scope', status: 403 })
      expect(failure.challenge).toEqual({ error: 'insufficient_scope', scope: 'mcp:read mcp:write' })
    }
  })
})

describe('the challenge', () => {
  const resource = {
    realm: 'mcp-registry',
    resourceMetadata: 'https://r.example/.well-known/oauth-protected-resource',
    requiredScopes: [],
  }
  const authenticate = createRouteAuthenticate(authenticator, { requiredScopes: [] })
  const challenge = async (values: readonly string[]) =>
    challengeFor(await failureOf(() => authenticate(matched(values))), resource)

  it('names the discovery document and, without credentials, no error', async () => {
    expect(await challenge([])).toBe(
      'Bearer realm="mcp-registry", resource_metadata="https://r.example/.well-known/oauth-protected-resource"',
    )
  })

  it('says invalid_token for a token that is refused, and nothing of the token', async () => {
    const text = await token({ aud: 'other' })
    const challenged = await challenge(bearer(text))
    expect(challenged).toContain('error="invalid_token"')
    expect(challenged).not.toContain('other')
  })
})
