import { Client, CrossAppAccessProvider, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { decodeJwt } from 'jose'
import { afterEach, expect, it } from 'vitest'
import { ID_JAG, JOB, JWT_BEARER } from '../../../support/authserver/grants/rig.ts'
import { createSockets } from '../../../support/sockets.ts'
import { startIdp } from '../../../support/upstreams/idp.ts'
import { call, LEGACY } from '../../../support/e2e/authserver/application.ts'
import { newSigningKey } from '../../../support/e2e/authserver/fleet.ts'
import { openWorld } from '../../../support/e2e/authserver/world.ts'

// The cross-app provider of the official client, with nothing but the URL of the MCP server: our metadata lead it to our
// server, which takes the assertion that it brings.

const sockets = createSockets()
afterEach(() => sockets.closeAll())

async function open() {
  const idp = await startIdp(sockets)
  const key = newSigningKey()
  const world = await openWorld(sockets, {
    spec: {
      signingKeySecretRefs: [{ name: 'as', key: 'signing' }],
      identityAssertions: { issuers: [{ issuerUrl: idp.url, caBundleRef: { name: 'idp', key: 'ca' } }] },
      clients: [{ clientId: JOB.id, clientSecretRef: { name: 'clients', key: 'job' }, grantTypes: [JWT_BEARER] }],
    },
    files: () => ({ 'secrets/as/signing': key, 'secrets/clients/job': JOB.secret }),
  })
  const connect = async (revision: string, claims: object = {}) => {
    const asked: object[] = []
    const provider = new CrossAppAccessProvider({
      clientId: JOB.id,
      clientSecret: JOB.secret,
      expectedIssuer: world.url,
      assertion: ({ authorizationServerUrl, resourceUrl }) => {
        asked.push({ authorizationServerUrl, resourceUrl })
        const now = Math.floor(Date.now() / 1_000)
        const said = { iss: idp.url, sub: 'alice', jti: 'one', client_id: JOB.id, iat: now, exp: now + 300 }
        return idp.key.sign({ ...said, aud: world.url, resource: resourceUrl, ...claims }, { typ: ID_JAG })
      },
    })
    const mode = revision === LEGACY ? ('legacy' as const) : { pin: revision }
    const client = new Client({ name: 'official', version: '2.0.0' }, { versionNegotiation: { mode } })
    const transport = new StreamableHTTPClientTransport(new URL(`${world.url}/mcp`), { authProvider: provider })
    return { client, asked, provider, connected: client.connect(transport) }
  }
  return { world, connect }
}

it.each([LEGACY, '2026-07-28'])('gets in with an assertion, without anybody who logs in: %s', async (revision) => {
  const { world, connect } = await open()
  const { client, asked, provider, connected } = await connect(revision)
  await connected
  expect(await call(client)).toContain('tools/call')
  expect(asked).toEqual([{ authorizationServerUrl: world.url, resourceUrl: `${world.url}/mcp` }])
  expect(decodeJwt(provider.tokens()?.access_token ?? '')).toMatchObject({
    iss: world.url,
    aud: `${world.url}/mcp`,
    client_id: JOB.id,
  })
  await client.close()
})

it('does not with one that is for another server', async () => {
  const { connect } = await open()
  const { client, connected } = await connect(LEGACY, { aud: 'https://other.example' })
  await expect(connected).rejects.toThrow(/invalid_grant|assertion|grant/i)
  await client.close()
})
