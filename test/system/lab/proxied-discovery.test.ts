import {
  Client as Client2,
  type OAuthDiscoveryState,
  StreamableHTTPClientTransport as Transport2,
} from '@modelcontextprotocol/client'
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Lab } from '../../../lab/cli/lab-compose.ts'
import { startTestLab } from '../../support/lab/proxied.ts'

let lab: Lab

beforeAll(async () => {
  lab = await startTestLab()
})
afterAll(() => lab.close())

const REDIRECT = 'http://127.0.0.1:6274/callback'
const INFO = { name: 'discovery', version: '1.0.0' }

/** Storage of an MCP client's login, and a browser that picks a user. */
function createLogin(user: string) {
  const kept: {
    client?: object
    tokens?: object
    verifier?: string
    callback?: URLSearchParams
    discovery?: OAuthDiscoveryState
  } = {}
  const provider = {
    redirectUrl: REDIRECT,
    clientMetadata: { redirect_uris: [REDIRECT], client_name: 'discovery', token_endpoint_auth_method: 'none' },
    clientInformation: () => kept.client as { client_id: string } | undefined,
    saveClientInformation: (client: object) => void (kept.client = client),
    tokens: () => kept.tokens as { access_token: string; token_type: string } | undefined,
    saveTokens: (tokens: object) => void (kept.tokens = tokens),
    saveCodeVerifier: (verifier: string) => void (kept.verifier = verifier),
    codeVerifier: () => kept.verifier ?? '',
    saveDiscoveryState: (state: OAuthDiscoveryState) => void (kept.discovery = state),
    discoveryState: () => kept.discovery,
    redirectToAuthorization: async (url: URL) => {
      const page = await (await fetch(url)).text()
      const login = /name="login" value="([^"]+)"/.exec(page)?.[1] ?? ''
      const body = new URLSearchParams({ login, user })
      const response = await fetch(new URL('/login', url), { method: 'POST', body, redirect: 'manual' })
      kept.callback = new URL(response.headers.get('location') ?? 'none:').searchParams
    },
  }
  return { kept, provider }
}

describe('from the 401 to a token and a call, by discovery alone', () => {
  test.each(['bearer-token', 'token-exchange', 'cloud-sts'])('sdk 1.x at the route %s', async (route) => {
    const { kept, provider } = createLogin('alice')
    const url = new URL(`${lab.url}/${route}`)
    const first = new Transport1(url, { authProvider: provider })
    await expect(new Client1(INFO).connect(first)).rejects.toThrow('Unauthorized')
    await first.finishAuth(kept.callback?.get('code') ?? '')
    const client = new Client1(INFO)
    await client.connect(new Transport1(url, { authProvider: provider }))
    expect((await client.callTool({ name: 'test_simple_text' })).isError).toBeUndefined()
    expect(lab.backend.requests(`/${route}`).at(-1)?.status).toBe(200)
    await client.close()
  })

  test.each(['legacy', { pin: '2026-07-28' }] as const)('client 2.x in mode %j', async (mode) => {
    const { kept, provider } = createLogin('bob')
    const url = new URL(`${lab.url}/token-exchange`)
    const options = { versionNegotiation: { mode } }
    const first = new Transport2(url, { authProvider: provider })
    await expect(new Client2(INFO, options).connect(first)).rejects.toThrow('Unauthorized')
    await first.finishAuth(kept.callback ?? new URLSearchParams())
    const client = new Client2(INFO, options)
    await client.connect(new Transport2(url, { authProvider: provider }))
    await client.callTool({ name: 'show_request' })
    expect(lab.backend.requests('/token-exchange').at(-1)?.verified).toMatchObject({ claims: { sub: 'bob' } })
    await client.close()
  })
})
