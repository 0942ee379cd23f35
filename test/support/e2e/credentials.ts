import { monotonicOf } from '../ports.ts'
import { type Clock, Secret } from '../../../src/core/index.ts'
import {
  LAB_AUDIENCE,
  type LabBackend,
  type LabIdentityProvider,
  type LabSts,
  startLabBackend,
  startLabIdentityProvider,
  startLabSts,
} from '../../../lab/index.ts'
import type { RunProxyOptions } from '../../../src/compose/proxy/process.ts'
import { openOtherGrants, OTHER_GRANTS, type OtherGrants } from './grants.ts'
import { post } from './lab.ts'
import { authConfig, proxyConfig, run, type RunningTestProxy } from './run.ts'

type Claims = Parameters<LabIdentityProvider['mint']>[0]

/** The real proxy with two exchanges, the other grants and one cloudSts, each with its own file, before the demo services. */
export interface CredentialsWorld {
  readonly identity: LabIdentityProvider
  readonly sts: LabSts
  readonly others: OtherGrants
  readonly backend: LabBackend
  readonly proxy: RunningTestProxy
  /** Headers of a caller. */
  bearer(claims: Claims): Promise<Record<string, string>>
  /** Sends a tool call in one POST and reads the response. */
  call(route: string, headers: Record<string, string>): Promise<Response>
  /** Of a call that is nothing to the MCP server, only its status. */
  status(route: string, headers: Record<string, string>): Promise<number>
  /** JSON of the admin listener. */
  admin(path: string, method?: string): Promise<{ status: number; json: Record<string, unknown> }>
  close(): Promise<void>
}

export const ROLE = 'arn:cloud:iam::000000000000:role/'
const NAMES = ['one', 'two'] as const
const SECRET = 'a-secret-of-'

/** The exchange of one of the two configs, with what a test wants different. */
export const exchangeConfig = (name: string, tokenUrl: string, extra: object = {}): string =>
  authConfig(name, {
    type: 'tokenExchange',
    tokenExchange: {
      tokenUrl,
      audience: name,
      clientId: name,
      clientSecretRef: { name, key: 'secret' },
      ...extra,
    },
  })

export const CALL = {
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: {
    name: 'test_simple_text',
    arguments: {},
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'e2e', version: '1.0.0' },
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  },
}
export const MCP = {
  'mcp-protocol-version': '2026-07-28',
  'mcp-method': 'tools/call',
  'mcp-name': 'test_simple_text',
}

const SHOWN = { ...CALL, params: { ...CALL.params, name: 'show_request' } }
/** The status of a call that the backend verifies and answers as plain text, without its slower MCP server. */
export async function statusAt(url: string, headers: Record<string, string>): Promise<number> {
  const response = await post(url, SHOWN, { ...headers, accept: 'text/plain' })
  await response.arrayBuffer()
  return response.status
}

interface WorldOptions extends Partial<RunProxyOptions> {
  readonly clock?: Clock
  /** The URL of what stands before a token endpoint, or before STS. Default: nothing does. */
  readonly before?: (url: string) => Promise<string>
}

/** Starts all of it on free ports; all share `clock`. */
export async function openCredentialsWorld(given: WorldOptions = {}): Promise<CredentialsWorld> {
  const { before = (url) => Promise.resolve(url), ...options } = given
  const { clock = { now: () => Date.now() } } = options
  const others = await openOtherGrants(clock)
  const exchanging = NAMES.map((id) => ({
    id,
    secret: new Secret(`${SECRET}${id}`),
    may: ['exchange'] as const,
    audiences: [id],
  }))
  const identity = await startLabIdentityProvider({ port: 0, clock, clients: [...exchanging, ...others.clients] })
  const { mounts, files } = await others.for(identity)
  const roles = ['admin', 'developer', 'reader'].map((name) => ({ arn: `${ROLE}${name}`, audiences: [LAB_AUDIENCE] }))
  const trust = { issuer: identity.url, keys: identity.jwks, roles }
  const sts = await startLabSts({ port: 0, clock, trust, faults: identity.faults })
  const exchanged = (audience: string) =>
    ({ kind: 'jwt', issuer: identity.url, audience, keys: identity.jwks, isRevoked: identity.isRevoked }) as const
  const backend = await startLabBackend({
    port: 0,
    clock,
    keep: 2_000,
    mounts: {
      '/one': exchanged('one'),
      '/two': exchanged('two'),
      '/aws': { kind: 'sigv4', region: 'eu-west-1', service: 'aws-mcp', lookup: sts.lookup },
      ...mounts,
    },
  })
  const tokenUrl = await before(`${identity.url}/token`)
  const proxy = await run(
    {
      'one.json': exchangeConfig('one', tokenUrl),
      'two.json': exchangeConfig('two', tokenUrl),
      'aws.json': authConfig('aws', {
        type: 'awsSts',
        awsSts: {
          region: 'eu-west-1',
          roleMappings: [
            { claim: 'admins', roleArn: `${ROLE}admin` },
            { matcher: '"dev" in claims.groups', roleArn: `${ROLE}developer` },
          ],
          fallbackRoleArn: `${ROLE}reader`,
        },
      }),
      'proxy.json': proxyConfig({
        auth: {
          mode: 'oauth',
          oauth: {
            resourceUrl: 'http://127.0.0.1/',
            providers: [{ name: 'lab', issuerUrl: identity.url, audience: LAB_AUDIENCE }],
          },
        },
        routes: [...NAMES, ...OTHER_GRANTS, 'aws'].map((name) => ({
          name,
          path: `/${name}`,
          target: `${backend.url}/${name}/mcp`,
          externalAuthConfigRef: { name },
        })),
      }),
      ...files,
      ...Object.fromEntries(NAMES.map((name) => [`secrets/${name}/secret`, `${SECRET}${name}`])),
    },
    // Both clocks move together.
    {
      stsEndpoint: await before(sts.url),
      ...options,
      clock,
      ...(options.clock === undefined ? {} : { monotonicClock: monotonicOf(clock) }),
    },
  )
  const call = async (route: string, headers: Record<string, string>): Promise<Response> => {
    const response = await post(`${proxy.url}/${route}`, CALL, { ...MCP, ...headers })
    const body = await response.text()
    return new Response(body, { status: response.status, headers: response.headers })
  }
  return {
    identity,
    sts,
    others,
    backend,
    proxy,
    call,
    bearer: async (claims) => ({ authorization: `Bearer ${await identity.mint({ ttlSeconds: 3_600, ...claims })}` }),
    status: (route, headers) => statusAt(`${proxy.url}/${route}`, headers),
    async admin(path, method = 'GET') {
      const response = await fetch(`${proxy.adminUrl}${path}`, { method })
      return { status: response.status, json: (await response.json()) as Record<string, unknown> }
    },
    async close() {
      await proxy.close()
      await Promise.all([backend.close(), sts.close(), identity.close(), others.close()])
    },
  }
}
