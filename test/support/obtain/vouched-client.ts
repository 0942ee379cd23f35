import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { decodeJwt } from 'jose'
import type { ClaimValue } from '../../../src/core/index.ts'
import { xaa } from '../../../src/resources/on-behalf/xaa.ts'
import { createCaller } from '../ports.ts'
import { createSockets } from '../sockets.ts'
import { createRig } from './harness.ts'

// A client program of the conformance suite: it gets the URL of an MCP server and, from the environment, an ID token with
// two clients. Both legs are those of type `xaa`; the token that comes of them is shown by the official client.

interface Context {
  readonly client_id: string
  readonly client_secret: string
  readonly idp_client_id: string
  readonly idp_id_token: string
  readonly idp_token_endpoint: string
}

const json = async (url: URL | string): Promise<Record<string, unknown>> =>
  (await (await fetch(url)).json()) as Record<string, unknown>

const sockets = createSockets()
const server = new URL(process.argv.at(-1) ?? '')
const context = JSON.parse(process.env['MCP_CONFORMANCE_CONTEXT'] ?? '{}') as Context
const resource = await json(new URL(`/.well-known/oauth-protected-resource${server.pathname}`, server))
const [issuer] = resource['authorization_servers'] as [string]
const metadata = await json(new URL('/.well-known/oauth-authorization-server', issuer))

const rig = createRig(sockets, { clock: Date, secrets: { 'target/secret': context.client_secret } })
const spec = xaa().parse({
  idpTokenUrl: 'https://idp.example/token',
  idpClientId: context.idp_client_id,
  targetTokenUrl: metadata['token_endpoint'],
  targetClientId: context.client_id,
  targetClientSecretRef: { name: 'target', key: 'secret' },
  targetAudience: metadata['issuer'],
  targetResource: resource['resource'],
})
const { header } = rig.open({
  name: 'conformance',
  namespace: 'default',
  configHash: 'h',
  source: { file: 'test.yaml', line: 1 },
  type: 'xaa',
  // Plain http, which the schema refuses.
  spec: { ...spec, idpTokenUrl: context.idp_token_endpoint },
})
const { sub: subject = '', iss, exp = 0, ...claims } = decodeJwt<Record<string, ClaimValue>>(context.idp_id_token)
const caller = createCaller({
  subject,
  issuer: iss ?? '',
  claims: { ...claims, iat: null, scp: null },
  token: context.idp_id_token,
  expiresAtMs: exp * 1_000,
})
const [, authorization = ''] = (await header(caller)).split(': ')

const client = new Client({ name: 'vouched', version: '1.0.0' })
await client.connect(new StreamableHTTPClientTransport(server, { requestInit: { headers: { authorization } } }))
await client.listTools()
await client.close()
await sockets.closeAll()
