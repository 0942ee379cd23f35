import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  Client as Client2,
  ClientCredentialsProvider as Credentials2,
  StreamableHTTPClientTransport as Transport2,
} from '@modelcontextprotocol/client'
import { ClientCredentialsProvider as Credentials1 } from '@modelcontextprotocol/sdk/client/auth-extensions.js'
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { Provider } from 'oidc-provider'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Secret } from '../../../src/core/index.ts'
import { type LabBackend, startLabBackend } from '../../../lab/index.ts'
import { authConfig, freePort, proxyConfig, run, type RunningTestProxy } from '../../support/e2e/run.ts'

const CLIENT = { clientId: 'mcp-client', clientSecret: 'a-secret-of-the-client-that-is-long-enough' }
const KEY = 'the-key-that-only-the-backend-knows'

let identity: Server
let backend: LabBackend
let proxy: RunningTestProxy
let resourceUrl: string

/** `oidc-provider` as an independent authorization server: JWT access tokens for the resource that is asked for. */
async function startIdentityProvider(resource: string): Promise<Server> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: CLIENT.clientId,
        client_secret: CLIENT.clientSecret,
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
        scope: 'mcp:tools',
      },
    ],
    scopes: ['mcp:tools'],
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_context, indicator) => {
          if (indicator !== resource) throw new Error('unknown resource')
          return { scope: 'mcp:tools', audience: indicator, accessTokenFormat: 'jwt', accessTokenTTL: 300 }
        },
      },
    },
  })
  const callback = provider.callback()
  server.on('request', (request, response) => void callback(request, response))
  return server
}

beforeAll(async () => {
  const port = await freePort()
  resourceUrl = `http://127.0.0.1:${port}/tools`
  identity = await startIdentityProvider(resourceUrl)
  backend = await startLabBackend({
    port: 0,
    mounts: { '/tools': { kind: 'header', name: 'X-Api-Key', value: new Secret(KEY) } },
    clock: { now: () => Date.now() },
  })
  const issuerUrl = `http://127.0.0.1:${(identity.address() as AddressInfo).port}`
  proxy = await run(
    {
      'auth.json': authConfig('key', {
        type: 'headerInjection',
        headerInjection: { headerName: 'X-Api-Key', valueSecretRef: { name: 'api', key: 'key' } },
      }),
      'proxy.json': proxyConfig({
        auth: {
          mode: 'oauth',
          oauth: {
            resourceUrl,
            scopesSupported: ['mcp:tools'],
            providers: [{ name: 'oidc-provider', issuerUrl, audience: resourceUrl }],
          },
        },
        routes: [
          {
            name: 'tools',
            path: '/tools',
            target: `${backend.url}/tools/mcp`,
            externalAuthConfigRef: { name: 'key' },
            resourceUrl,
            requiredScopes: ['mcp:tools'],
          },
        ],
      }),
      'secrets/api/key': KEY,
    },
    { listen: `127.0.0.1:${port}` },
  )
})
afterAll(async () => {
  await proxy.close()
  await backend.close()
  identity.closeAllConnections()
  await new Promise((resolve) => identity.close(resolve))
})

describe('an official client that knows nothing but the URL and its own credentials', () => {
  const CLIENTS = {
    // Its client-credentials provider asks for the scopes that it was made with, whatever the challenge names.
    'sdk 1.x': async () => {
      const client = new Client1({ name: 'discovery', version: '1' })
      await client.connect(
        new Transport1(new URL(resourceUrl), { authProvider: new Credentials1({ ...CLIENT, scope: 'mcp:tools' }) }),
      )
      return client
    },
    'client 2.x': async () => {
      const client = new Client2({ name: 'discovery', version: '1' })
      await client.connect(new Transport2(new URL(resourceUrl), { authProvider: new Credentials2(CLIENT) }))
      return client
    },
  }

  it.each(Object.keys(CLIENTS) as (keyof typeof CLIENTS)[])('%s finds its way from the 401 to a tool', async (name) => {
    backend.forget()
    const client = await CLIENTS[name]()
    const answer = await client.callTool({ name: 'show_request', arguments: {} })
    expect(JSON.stringify(answer)).toContain(KEY)
    const seen = backend.requests('/tools')
    expect(seen.length).toBeGreaterThan(0)
    for (const request of seen) expect(request.headers.join('\n').toLowerCase()).not.toContain('authorization')
    await client.close()
  })

  it('names the metadata in the challenge and the issuer in the metadata', async () => {
    const response = await fetch(resourceUrl, { method: 'POST', body: '{}' })
    expect(response.status).toBe(401)
    const challenge = response.headers.get('www-authenticate') ?? ''
    const metadata = /resource_metadata="([^"]+)"/.exec(challenge)?.[1] ?? ''
    expect(metadata).toBe(new URL('/.well-known/oauth-protected-resource/tools', resourceUrl).href)
    expect(challenge).toContain('scope="mcp:tools"')
    // The realm is not configured.
    expect(challenge).toContain(`Bearer realm="${new URL(resourceUrl).host}"`)
    expect(await (await fetch(metadata)).json()).toEqual({
      resource: resourceUrl,
      authorization_servers: [`http://127.0.0.1:${(identity.address() as AddressInfo).port}`],
      scopes_supported: ['mcp:tools'],
      bearer_methods_supported: ['header'],
    })
  })
})
