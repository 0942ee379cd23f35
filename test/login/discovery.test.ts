import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { loginOutbound } from '../../src/commands/login-options.ts'
import { loginCredentials, type LoginCredentialsOptions, openLoginStore } from '../../src/login/index.ts'
import { recordLog } from '../e2e/lab.ts'

type Json = Readonly<Record<string, unknown>>

let server: Server
let origin: string
let directory: string
/** What the server answers with, by path. */
let documents: Record<string, Json>
let asked: { path: string; body: URLSearchParams | Json; authorization: string | undefined }[]

beforeAll(async () => {
  server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const where = request.url ?? ''
      const text = Buffer.concat(chunks).toString()
      const body = text.startsWith('{') ? (JSON.parse(text) as Json) : new URLSearchParams(text)
      asked.push({ path: where, body, authorization: request.headers.authorization })
      const found = documents[where]
      const status = found === undefined ? 404 : where === '/register' ? 201 : 200
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(found ?? {}))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => void server.close())
beforeEach(async () => {
  directory = await mkdtemp(path.join(os.tmpdir(), 'extauth-discovery-'))
  asked = []
  documents = {
    '/.well-known/oauth-protected-resource/mcp': {
      resource: `${origin}/mcp`,
      authorization_servers: [`${origin}/as`],
      scopes_supported: ['files'],
    },
    '/.well-known/oauth-authorization-server/as': metadata(),
    '/register': { client_id: 'registered', token_endpoint_auth_method: 'none' },
    '/token': { access_token: 'access', token_type: 'Bearer', expires_in: 300, refresh_token: 'refresh' },
  }
})
afterEach(() => rm(directory, { recursive: true }))

const metadata = (more: Json = {}): Json => ({
  issuer: `${origin}/as`,
  authorization_endpoint: `${origin}/authorize`,
  token_endpoint: `${origin}/token`,
  registration_endpoint: `${origin}/register`,
  response_types_supported: ['code'],
  code_challenge_methods_supported: ['S256'],
  ...more,
})

/** Logs in, with a person who agrees at once; gives what the browser was shown. */
async function login(options: Partial<LoginCredentialsOptions> = {}, challenge = 'Bearer'): Promise<URLSearchParams> {
  const endpoint = new URL(`${origin}/mcp`)
  const shown: URLSearchParams[] = []
  const credentials = loginCredentials({
    endpoint,
    outbound: loginOutbound(endpoint, undefined, {}),
    store: openLoginStore(directory),
    openBrowser: (url) => {
      const { searchParams } = new URL(url)
      shown.push(searchParams)
      void fetch(`${searchParams.get('redirect_uri') ?? ''}?code=c&state=${searchParams.get('state') ?? ''}`)
    },
    now: () => Date.now(),
    patienceMs: 10_000,
    log: recordLog(),
    ...options,
  })
  await credentials.refused(undefined, challenge, true)
  expect((await credentials.current())?.reveal()).toBe('access')
  return shown[0] ?? new URLSearchParams()
}

describe('where to log in', () => {
  it.each([
    '/.well-known/oauth-authorization-server/as',
    '/.well-known/openid-configuration/as',
    '/as/.well-known/openid-configuration',
  ])('is found at %s', async (place) => {
    delete documents['/.well-known/oauth-authorization-server/as']
    documents[place] = metadata()
    const parameters = await login()
    expect(Object.fromEntries(parameters)).toMatchObject({ client_id: 'registered', scope: 'files' })
    const redeemed = asked.find((one) => one.path === '/token')?.body as URLSearchParams
    expect(Object.fromEntries(redeemed)).toMatchObject({
      grant_type: 'authorization_code',
      code: 'c',
      resource: `${origin}/mcp`,
      code_verifier: expect.stringMatching(/^[\w-]{43,}$/) as unknown,
    })
  })

  it('is what the challenge says, with its scopes', async () => {
    documents['/elsewhere'] = documents['/.well-known/oauth-protected-resource/mcp'] ?? {}
    delete documents['/.well-known/oauth-protected-resource/mcp']
    const challenge = `Bearer realm="a, b", resource_metadata="${origin}/elsewhere", scope="one two"`
    expect((await login({}, challenge)).get('scope')).toBe('one two')
  })

  it('may be the server itself, without metadata of its own (2025-03-26)', async () => {
    delete documents['/.well-known/oauth-protected-resource/mcp']
    documents['/.well-known/oauth-authorization-server'] = metadata({ issuer: origin })
    expect((await login()).get('resource')).toBe(`${origin}/mcp`)
  })

  it('asks for a refresh token where that takes a scope and a consent', async () => {
    documents['/.well-known/oauth-authorization-server/as'] = metadata({ scopes_supported: ['offline_access'] })
    const parameters = await login()
    expect([parameters.get('scope'), parameters.get('prompt')]).toEqual(['files offline_access', 'consent'])
  })

  it.each<[string, (all: Record<string, Json>) => void, string]>([
    [
      'another issuer',
      (all) => (all['/.well-known/oauth-authorization-server/as'] = metadata({ issuer: origin })),
      'can not be read',
    ],
    [
      'no PKCE',
      (all) =>
        (all['/.well-known/oauth-authorization-server/as'] = metadata({ code_challenge_methods_supported: ['plain'] })),
      'PKCE',
    ],
    ['no server', (all) => delete all['/.well-known/oauth-authorization-server/as'], 'can not be read'],
    [
      'plain http elsewhere',
      (all) =>
        (all['/.well-known/oauth-authorization-server/as'] = metadata({ token_endpoint: 'http://example.com/' })),
      'usable',
    ],
    [
      'a page as an endpoint',
      (all) =>
        (all['/.well-known/oauth-authorization-server/as'] = metadata({
          authorization_endpoint: 'javascript:alert(1)',
        })),
      'usable',
    ],
    [
      'another resource',
      (all) =>
        (all['/.well-known/oauth-protected-resource/mcp'] = {
          resource: 'https://example.com/mcp',
          authorization_servers: [origin],
        }),
      'another resource',
    ],
    [
      'a sibling',
      (all) =>
        (all['/.well-known/oauth-protected-resource/mcp'] = {
          resource: `${origin}/mc`,
          authorization_servers: [origin],
        }),
      'another resource',
    ],
    [
      'no registration',
      (all) => (all['/.well-known/oauth-authorization-server/as'] = metadata({ registration_endpoint: undefined })),
      '--client-id',
    ],
    [
      'a token for no bearer',
      (all) => (all['/token'] = { access_token: 'x', token_type: 'mac' }),
      'did not give a token',
    ],
  ])('is refused: %s', async (_what, change, says) => {
    change(documents)
    await expect(login()).rejects.toThrow(says)
    expect(await openLoginStore(directory).all()).toEqual([])
  })
})

describe('who asks', () => {
  it('is a client that was registered beforehand, with its secret', async () => {
    const parameters = await login({ client: { id: 'known', secret: 's3cret' } })
    expect(parameters.get('client_id')).toBe('known')
    expect(asked.find((one) => one.path === '/token')?.authorization).toBe(`Basic ${btoa('known:s3cret')}`)
    expect(asked.find((one) => one.path === '/register')).toBeUndefined()
  })

  it('is a metadata document where the server takes such, else registers', async () => {
    const clientMetadataUrl = 'https://client.example.com/mcp.json'
    expect((await login({ clientMetadataUrl })).get('client_id')).toBe('registered')
    await rm(directory, { recursive: true })
    documents['/.well-known/oauth-authorization-server/as'] = metadata({ client_id_metadata_document_supported: true })
    expect((await login({ clientMetadataUrl })).get('client_id')).toBe(clientMetadataUrl)
    const registration = asked.find((one) => one.path === '/register')
    expect(registration?.body).toMatchObject({ token_endpoint_auth_method: 'none', application_type: 'native' })
  })
})
