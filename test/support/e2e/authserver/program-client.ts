import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { authConfig, proxyConfig, run } from '../run.ts'

// A client program of the conformance suite: it gets the URL of an MCP server and, from the environment, a client that acts
// for itself. The whole proxy gets the token (type `clientCredentials`); an official client without any credential goes through it.

interface Context {
  readonly client_id: string
  readonly client_secret?: string
  readonly private_key_pem?: string
  readonly signing_algorithm?: string
}

const json = async (url: URL | string): Promise<Record<string, unknown>> =>
  (await (await fetch(url)).json()) as Record<string, unknown>

const server = new URL(process.argv.at(-1) ?? '')
const context = JSON.parse(process.env['MCP_CONFORMANCE_CONTEXT'] ?? '{}') as Context
const resource = await json(new URL(`/.well-known/oauth-protected-resource${server.pathname}`, server))
const [issuer] = resource['authorization_servers'] as [string]
const metadata = await json(new URL('/.well-known/oauth-authorization-server', issuer))

const { client_id: clientId, client_secret: secret, private_key_pem: key, signing_algorithm: algorithm } = context
const secretRef = { name: 'program', key: 'credential' }
const clientAuth =
  key === undefined
    ? { method: 'clientSecretBasic', clientId, secretRef }
    : {
        method: 'privateKeyJwt',
        clientId,
        key: { secretRef, algorithm },
        assertionAudience: metadata['issuer'],
      }
const proxy = await run({
  'auth.yaml': authConfig('program', {
    type: 'clientCredentials',
    clientCredentials: { tokenUrl: metadata['token_endpoint'], resource: resource['resource'], clientAuth },
  }),
  'proxy.yaml': proxyConfig({
    routes: [
      {
        name: 'program',
        path: '/mcp',
        target: server.href,
        auth: { mode: 'anonymous' },
        externalAuthConfigRef: { name: 'program' },
      },
    ],
  }),
  'secrets/program/credential': key ?? secret ?? '',
})
try {
  const client = new Client({ name: 'program', version: '1.0.0' })
  await client.connect(new StreamableHTTPClientTransport(new URL(`${proxy.url}/mcp`)))
  await client.listTools()
  await client.close()
} finally {
  await proxy.close()
}
