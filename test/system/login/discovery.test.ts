import { createHash } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { loginOutbound } from '../../../src/compose/login/index.ts'
import { loginCredentials } from '../../../src/login/index.ts'
import { AS_METADATA, type PaperServer, RESOURCE_METADATA, usePaperServer } from '../../support/login/paper-server.ts'

const paper = usePaperServer()

describe('where to log in', () => {
  it.each([AS_METADATA, '/.well-known/openid-configuration/as', '/as/.well-known/openid-configuration'])(
    'is found at %s',
    async (place) => {
      delete paper.documents[AS_METADATA]
      paper.documents[place] = paper.metadata()
      const parameters = await paper.login()
      expect(Object.fromEntries(parameters)).toMatchObject({ client_id: 'registered', scope: 'files' })
      const redeemed = paper.asked.find((one) => one.path === '/token')?.body as URLSearchParams
      expect(Object.fromEntries(redeemed)).toMatchObject({
        grant_type: 'authorization_code',
        code: 'c',
        resource: `${paper.origin}/mcp`,
        code_verifier: expect.stringMatching(/^[\w-]{43,}$/) as unknown,
      })
      const digest = createHash('sha256')
        .update(redeemed.get('code_verifier') ?? '')
        .digest('base64url')
      expect(Object.fromEntries(parameters)).toMatchObject({ code_challenge_method: 'S256', code_challenge: digest })
    },
  )

  it('is what the challenge says, with its scopes', async () => {
    paper.documents['/elsewhere'] = paper.documents[RESOURCE_METADATA] ?? {}
    delete paper.documents[RESOURCE_METADATA]
    const challenge = `Bearer realm="a, b", resource_metadata="${paper.origin}/elsewhere", scope="one two"`
    expect((await paper.login({}, challenge)).get('scope')).toBe('one two')
  })

  it('may be the server itself, without metadata of its own (2025-03-26)', async () => {
    delete paper.documents[RESOURCE_METADATA]
    paper.documents['/.well-known/oauth-authorization-server'] = paper.metadata({ issuer: paper.origin })
    expect((await paper.login()).get('resource')).toBe(`${paper.origin}/mcp`)
  })

  it('asks for a refresh token where that takes a scope and a consent', async () => {
    paper.documents[AS_METADATA] = paper.metadata({ scopes_supported: ['offline_access'] })
    const parameters = await paper.login()
    expect([parameters.get('scope'), parameters.get('prompt')]).toEqual(['files offline_access', 'consent'])
  })

  it.each<[string, (all: PaperServer['documents']) => void, string]>([
    [
      'another issuer',
      (all) => (all[AS_METADATA] = paper.metadata({ issuer: paper.origin })),
      'metadata are unavailable',
    ],
    ['no PKCE', (all) => (all[AS_METADATA] = paper.metadata({ code_challenge_methods_supported: ['plain'] })), 'PKCE'],
    ['no server', (all) => delete all[AS_METADATA], 'metadata are unavailable'],
    [
      'plain http elsewhere',
      (all) => (all[AS_METADATA] = paper.metadata({ token_endpoint: 'http://example.com/' })),
      'lack a valid',
    ],
    [
      'a page as an endpoint',
      (all) =>
        (all[AS_METADATA] = paper.metadata({
          authorization_endpoint: 'javascript:alert(1)',
        })),
      'lack a valid',
    ],
    [
      'for a different resource',
      (all) =>
        (all[RESOURCE_METADATA] = {
          resource: 'https://example.com/mcp',
          authorization_servers: [paper.origin],
        }),
      'for a different resource',
    ],
    [
      'a sibling',
      (all) =>
        (all[RESOURCE_METADATA] = {
          resource: `${paper.origin}/mc`,
          authorization_servers: [paper.origin],
        }),
      'for a different resource',
    ],
    [
      'no registration',
      (all) => (all[AS_METADATA] = paper.metadata({ registration_endpoint: undefined })),
      '--client-id',
    ],
    [
      'plain http where one logs in',
      (all) =>
        (all[RESOURCE_METADATA] = {
          resource: `${paper.origin}/mcp`,
          authorization_servers: ['http://example.com/as'],
        }),
      'https',
    ],
    [
      'nothing about PKCE',
      (all) => (all[AS_METADATA] = paper.metadata({ code_challenge_methods_supported: undefined })),
      'PKCE',
    ],
    [
      'user information in an address',
      (all) => (all[AS_METADATA] = paper.metadata({ authorization_endpoint: 'https://bank.example@example.com/' })),
      'lack a valid',
    ],
    [
      'registration over plain http',
      (all) => (all[AS_METADATA] = paper.metadata({ registration_endpoint: 'http://example.com/' })),
      '--client-id',
    ],
    [
      'a token that is bound to a key',
      (all) => (all['/token'] = { access_token: 'x', token_type: 'DPoP' }),
      'token_type is not Bearer',
    ],
    [
      'a token for no bearer',
      (all) => (all['/token'] = { access_token: 'x', token_type: 'mac' }),
      'issued no token (token endpoint: token_type is not Bearer)',
    ],
  ])('is refused: %s', async (_what, change, says) => {
    change(paper.documents)
    await expect(paper.login()).rejects.toThrow(says)
    expect(await paper.store.all()).toEqual([])
  })
})

describe('metadata that a challenge names', () => {
  it('are not on this machine when the MCP server is not', async () => {
    const outbound = loginOutbound(new URL('https://mcp.example.com/mcp'), undefined, {})
    const request = outbound.request({ method: 'GET', url: `${paper.origin}/elsewhere` })
    await expect(request).rejects.toMatchObject({ kind: 'blocked_address' })
    expect(paper.asked).toEqual([])
    await outbound.close()
  })

  it.each([
    ['over plain http', 'http://example.com/x', 'https'],
    ['that are not there', '/nowhere', 'metadata are unavailable'],
  ])('%s lead nowhere', async (_what, where, says) => {
    const url = where.startsWith('/') ? paper.origin + where : where
    await expect(paper.login({}, `Bearer resource_metadata="${url}"`)).rejects.toThrow(says)
    expect(paper.asked.map(({ path }) => path)).toEqual(where.startsWith('/') ? [where] : [])
    expect(paper.shown).toEqual([])
  })
})

describe('who asks', () => {
  it('is a client that was registered beforehand, with its secret', async () => {
    const parameters = await paper.login({ client: { id: 'known', secret: 's3cret' } })
    expect(parameters.get('client_id')).toBe('known')
    expect(paper.asked.find((one) => one.path === '/token')?.authorization).toBe(`Basic ${btoa('known:s3cret')}`)
    expect(paper.asked.find((one) => one.path === '/register')).toBeUndefined()
  })

  it('shows its secret in the body where the server takes it nowhere else, at a refresh as well', async () => {
    paper.documents[AS_METADATA] = paper.metadata({ token_endpoint_auth_methods_supported: ['client_secret_post'] })
    await paper.login({ client: { id: 'known', secret: 's3cret' } })
    const later = loginCredentials(paper.options({ now: () => Date.now() + 290_000 }))
    expect((await later.current())?.reveal()).toBe('access')
    const asked = paper.asked.filter((one) => one.path === '/token')
    expect(asked).toHaveLength(2)
    for (const { authorization, body } of asked) {
      expect(authorization).toBeUndefined()
      expect(Object.fromEntries(body as URLSearchParams)).toMatchObject({ client_id: 'known', client_secret: 's3cret' })
    }
  })

  it.each([
    ['none', undefined],
    ['none', ['client_secret_basic', 'none']],
    ['client_secret_basic', ['private_key_jwt', 'client_secret_post', 'client_secret_basic']],
    ['client_secret_post', ['client_secret_post']],
    ['none', ['private_key_jwt']],
  ])('registers with %s where the server offers %j', async (method, offered) => {
    paper.documents[AS_METADATA] = paper.metadata({ token_endpoint_auth_methods_supported: offered })
    await paper.login()
    const registration = paper.asked.find((one) => one.path === '/register')
    expect(registration?.body).toMatchObject({ token_endpoint_auth_method: method })
  })

  it('is a metadata document where the server takes such, else registers', async () => {
    const clientMetadataUrl = 'https://client.example.com/mcp.json'
    for (const supported of [undefined, false]) {
      paper.documents[AS_METADATA] = paper.metadata({ client_id_metadata_document_supported: supported })
      expect((await paper.login({ clientMetadataUrl })).get('client_id')).toBe('registered')
      await rm(paper.directory, { recursive: true })
    }
    paper.documents[AS_METADATA] = paper.metadata({ client_id_metadata_document_supported: true })
    expect((await paper.login({ clientMetadataUrl })).get('client_id')).toBe(clientMetadataUrl)
    const registration = paper.asked.find((one) => one.path === '/register')
    expect(registration?.body).toMatchObject({ token_endpoint_auth_method: 'none', application_type: 'native' })
  })
})
