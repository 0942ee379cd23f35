import { afterEach, beforeEach, expect, test } from 'vitest'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { buildCandidate, createServices, loadModules } from '../../../../src/compose/proxy/index.ts'
import { type Loaded, parseDocuments, type ResolvedProxy, resolveProxy } from '../../../../src/load/index.ts'
import type { Route } from '../../../../src/core/index.ts'
import { jsonSchema } from '../../../../src/load/publish/index.ts'
import { externalAuth, proxy } from '../../../support/load/documents/build.ts'
import { createManualClock, createRecordingLog } from '../../../support/ports.ts'
import { rawConnect } from '../../../support/raw.ts'
import { type Recorded, recorded } from '../../../support/recorded.ts'
import { createSockets } from '../../../support/sockets.ts'
import { startProxy } from '../../../support/proxy/harness.ts'
import { TLS } from '../../../support/tls.ts'

// A setting that has a schema and no effect passes every other test. Here each is followed: from the parsed document to the
// resolved configuration, and from there to what runs; fields of a running route are followed to the stages.
const sockets = createSockets()
let directory: string
let backend: string
beforeEach(async () => {
  backend = await sockets.http((_, response) => void response.writeHead(401).end())
  directory = await mkdtemp(path.join(tmpdir(), 'settings-'))
  await writeFile(path.join(directory, 'cert.pem'), TLS.client.cert)
  await writeFile(path.join(directory, 'key.pem'), TLS.client.key)
  await mkdir(path.join(directory, 'secrets/a'), { recursive: true })
  await writeFile(path.join(directory, 'secrets/a/b'), 'the-key'.padEnd(32, '-'))
})
afterEach(async () => {
  await sockets.closeAll()
  await rm(directory, { recursive: true, force: true })
})

const secret = { name: 'a', key: 'b' }
const authFor = (audience: string) => ({
  mode: 'oauth',
  publicPaths: ['/b/health'],
  oauth: {
    resourceUrl: 'https://mcp.example.com',
    realm: 'r',
    scopesSupported: ['a'],
    publicPaths: ['/a/health'],
    resourceDocumentation: 'https://docs.example.com',
    toleranceSeconds: 3,
    providers: [
      {
        name: 'corp',
        issuerUrl: 'https://idp.example.com',
        audience,
        audienceClaim: 'client_id',
        subject: 'ada',
        jwksUrl: 'https://idp.example.com/keys',
        introspectionUrl: 'https://idp.example.com/introspect',
        clientId: 'us',
        clientSecretFile: './secret',
        caCertPath: './cert.pem',
        authTokenFile: './token',
        allowPrivateIP: true,
        introspection: { requireAudience: false },
        insecureAllowHttp: true,
      },
    ],
  },
})
const ROUTE = {
  name: 'a',
  path: '/a',
  target: 'https://backend.example.com/mcp?key=a',
  externalAuthConfigRef: { name: 'token' },
  resourceUrl: 'https://mcp.example.com/a',
  auth: authFor('a'),
  requiredScopes: ['a'],
  allowBoundTokens: true,
  passHeaders: ['Remote-User'],
  headerForward: {
    addPlaintextHeaders: { 'X-Tenant': 'a' },
    addHeadersFromSecret: [{ headerName: 'X-Api', valueSecretRef: secret }],
  },
  timeouts: { connect: '1s', firstByte: '2s', idle: '3s' },
  limits: { bufferedBody: '1Mi', evaluatedBody: '64Ki' },
  authorization: {
    default: 'deny',
    rules: [1, 2].map((priority) => ({
      name: `a${priority}`,
      priority,
      tools: ['a*'],
      prompts: ['a*'],
      resources: ['a*'],
      methods: ['a*'],
      when: 'true',
      requireScopes: ['a'],
      effect: 'allow',
    })),
  },
  credentials: [
    {
      tools: ['a'],
      prompts: ['a'],
      resources: ['a'],
      methods: ['a'],
      when: 'true',
      externalAuthConfigRef: { name: 'key' },
    },
  ],
  sseKeepAlive: '4s',
  http2: true,
  allowUpgrade: true,
  targetTls: {
    caCertPath: './cert.pem',
    clientCertFile: './cert.pem',
    clientKeyFile: './key.pem',
    serverName: 'b',
    insecureSkipVerify: true,
  },
  onMatcherError: 'deny',
  insecureAllowAnonymous: true,
}
/** Every setting that a ProxyConfig can have, but for those that have a document, a store or another name of their own. */
const SPEC = {
  listen: {
    address: '0.0.0.0:8080',
    tls: { certFile: './cert.pem', keyFile: './key.pem' },
    allowedOrigins: ['https://app.example.com'],
    allowedHosts: ['a'],
    headerLimit: '8Ki',
    connectionLimit: 5,
    bufferedBodiesLimit: '2Mi',
    trustedProxies: ['10.0.0.0/8'],
  },
  admin: { address: '127.0.0.1:8081', tokenFile: './token', inspector: 'heads' },
  secretsDirectory: './secrets',
  sessionKeySecretRef: secret,
  auth: authFor('default'),
  limits: { cachedCredentials: 200 },
  audit: {
    file: './audit.jsonl',
    format: 'ocsf',
    events: ['mcp_tool_call'],
    exclude: ['mcp_ping'],
    includeArguments: true,
    whenFull: 'block',
    keySecretRef: secret,
  },
  routes: [ROUTE],
}
const ELSEWHERE: ReadonlySet<string> = new Set([
  'authServerRef',
  'cache',
  'routes[].authServerRef',
  // Read where they are opened: test/unit/connections.
  'connections',
  // In place of clientId and clientSecretFile: test/unit/oauth/client-auth.test.ts.
  'auth.oauth.providers[].clientAuth',
  'routes[].auth.oauth.providers[].clientAuth',
])

function load(): Loaded {
  // A further route for the defaults, and an anonymous one.
  const { headerForward, authorization, credentials, ...first } = ROUTE
  const { auth: _, ...rest } = { ...first, name: 'b', path: '/b', resourceUrl: 'https://mcp.example.com/b' }
  // Messages of upgraded connections are not evaluated.
  const other = { ...rest, authorization, allowUpgrade: false }
  // Headers are no more for paths that anybody may call than a credential is.
  const open = { headerForward, name: 'c', path: '/c', target: `${backend}/mcp?key=c`, auth: { mode: 'anonymous' } }
  const anonymous = { ...open, externalAuthConfigRef: { name: 'key' }, insecureAllowAnonymous: true }
  const ruled = {
    credentials,
    name: 'd',
    path: '/d',
    target: `${backend}/mcp?key=d`,
    authorization: { default: 'allow' },
  }
  const routes = [first, other, anonymous, { ...anonymous, ...ruled }]
  const key = { type: 'headerInjection', headerInjection: { headerName: 'X-Key', valueSecretRef: secret } }
  const documents = [proxy({ ...SPEC, routes }), externalAuth({ type: 'unauthenticated' }), externalAuth(key, 'key')]
  const text = documents.map((document) => JSON.stringify(document)).join('\n---\n')
  const loaded = parseDocuments([{ path: path.join(directory, 'proxy.yaml'), text }])
  expect(loaded.problems).toEqual([])
  return loaded
}

interface Schema {
  readonly $ref?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly $defs?: Readonly<Record<string, Schema>>
}

/** The settings of a schema that a value has not. */
function missing(root: Schema, schema: Schema, value: unknown, at: string): string[] {
  const { $ref } = schema
  if ($ref !== undefined) return missing(root, root.$defs?.[$ref.split('/').at(-1) ?? ''] ?? {}, value, at)
  if (Array.isArray(value)) return value.flatMap((one: unknown) => missing(root, schema.items ?? {}, one, `${at}[]`))
  return Object.entries(schema.properties ?? {}).flatMap(([name, of]) => {
    const path = at === '' ? name : `${at}.${name}`
    if (ELSEWHERE.has(path)) return []
    const has = typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    return has ? missing(root, of, (value as Readonly<Record<string, unknown>>)[name], path) : [path]
  })
}

test('every setting of a ProxyConfig is among those that are followed', () => {
  const root = jsonSchema('ProxyConfig') as Schema
  const spec = root.properties?.['spec'] ?? {}
  expect(Object.keys(spec.properties ?? {})).toContain('routes')
  expect(missing(root, spec, SPEC, '')).toEqual([])
})

/** Builds a configuration as a start does, serves requests that reach every stage, and closes it. */
async function run(config: ResolvedProxy): Promise<Recorded<readonly Route[]>> {
  const log = createRecordingLog()
  const services = createServices({ ...config, stsEndpoint: undefined, env: {}, log, clock: createManualClock() })
  const { runtime } = await buildCandidate(config, 'https://mcp.example.com', services, await loadModules(config))
  const routes = recorded(runtime.routes)
  const served = await startProxy(sockets, { ...runtime, routes: routes.value })
  expect((await fetch(`${served.url}/a/x`)).status).toBe(401)
  expect((await fetch(`${served.url}/c`, { method: 'POST', body: 'x' })).status).toBe(502)
  const message = {
    method: 'POST',
    body: '{"jsonrpc":"2.0","method":"a"}',
    headers: { 'content-type': 'application/json' },
  }
  expect((await fetch(`${served.url}/d`, message)).status).toBe(502)
  const upgrade = rawConnect(
    served.url,
    'GET /c HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
  )
  await upgrade.until(/^HTTP\/1\.1 501 /)
  await served.drain(0)
  await runtime.close()
  await services.stores.close()
  return routes
}

test('every setting of a parsed ProxyConfig is read while it is resolved, or handed on and read by what is built of it', async () => {
  const loaded = load()
  const followed = recorded(loaded.proxies[0]?.document.spec)
  const proxies = loaded.proxies.map((located) => ({
    ...located,
    document: { ...located.document, spec: followed.value ?? located.document.spec },
  }))
  const { config } = resolveProxy({ ...loaded, proxies }, {})
  if (config === undefined) throw new Error('not resolved')
  await run(config)
  // Handed on to the listener, which opens the secret.
  expect(followed.unread().filter((name) => !name.startsWith('sessionKeySecretRef.'))).toEqual([])
})

/** Settings that listeners and the process read when they open. */
const OF_PROCESS = /^(listen|admin|namespace|secretsDirectory|sessionKeySecretRef|maxCredentials|warnings)\b/
/** Settings that are used only while loading, in failures, or for opaque tokens. */
const NOT_BUILT: ReadonlySet<string> = new Set(
  [
    'insecureAllowAnonymous',
    // Only routes with a connection have it, and what prompts its callers reads it.
    'callers.oauth.providers[].insecureAllowHttp',
    'callers.oauth.providers[].clientId',
    ...['name', 'namespace', 'configHash', 'source.file', 'source.line', 'upstream'].flatMap((name) => [
      `auth.${name}`,
      `credentials[].auth.${name}`,
    ]),
  ].map((name) => `routes[].${name}`),
)

test('every setting of a resolved route is read where the route is built or by a stage, and so is all that is worked out for stages', async () => {
  const { config } = resolveProxy(load(), {})
  if (config === undefined) throw new Error('not resolved')
  const followed = recorded<ResolvedProxy>(config, 'routes[]')
  const routes = await run(followed.value)
  const unreadByStages = new Set(routes.unread().map((name) => `routes${name}`))
  const ofConfig = followed.unread().filter((name) => !name.startsWith('routes[].') || unreadByStages.has(name))
  const ofRoutes = [...unreadByStages].filter((name) => !followed.wasRead(name))
  const unread = [...new Set([...ofConfig, ...ofRoutes])]
  expect(unread.filter((name) => !OF_PROCESS.test(name) && !NOT_BUILT.has(name))).toEqual([])
})
