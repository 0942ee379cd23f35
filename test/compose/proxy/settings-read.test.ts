import { afterEach, beforeEach, expect, test } from 'vitest'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { buildCandidate, createServices, loadRooms } from '../../../src/compose/proxy/index.ts'
import { type Loaded, parseDocuments, type ResolvedProxy, resolveProxy } from '../../../src/load/index.ts'
import { jsonSchema } from '../../../src/load/publish/index.ts'
import { externalAuth, proxy } from '../../load/documents/build.ts'
import { createManualClock, createRecordingLog } from '../../support/ports.ts'
import { recorded } from '../../support/recorded.ts'
import { TLS } from '../../support/tls.ts'

// A setting that has a schema and no effect passes every other test. Here each is followed: from the parsed document to the
// resolved configuration, and from there to what runs.
let directory: string
beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'settings-'))
  await writeFile(path.join(directory, 'cert.pem'), TLS.client.cert)
  await writeFile(path.join(directory, 'key.pem'), TLS.client.key)
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const secret = { name: 'a', key: 'b' }
const authFor = (audience: string) => ({
  mode: 'oauth',
  publicPaths: ['/b'],
  oauth: {
    resourceUrl: 'https://mcp.example.com',
    realm: 'r',
    scopesSupported: ['a'],
    publicPaths: ['/a'],
    resourceDocumentation: 'https://docs.example.com',
    toleranceSeconds: 3,
    providers: [
      {
        name: 'corp',
        issuerUrl: 'https://idp.example.com',
        audience,
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
  passHeaders: ['Remote-User'],
  timeouts: { connect: '1s', firstByte: '2s', idle: '3s' },
  limits: { bufferedBody: '1Mi' },
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
/** Every setting that a ProxyConfig can have, but for those that have a document or a store of their own. */
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
  routes: [ROUTE],
}
const ELSEWHERE: ReadonlySet<string> = new Set(['authServerRef', 'cache', 'routes[].authServerRef'])

function load(): Loaded {
  // One route more, for which the defaults are.
  const { auth: _, ...other } = { ...ROUTE, name: 'b', path: '/b', resourceUrl: 'https://mcp.example.com/b' }
  const documents = [proxy({ ...SPEC, routes: [ROUTE, other] }), externalAuth({ type: 'unauthenticated' })]
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

/** Builds what a configuration needs, as a start does, and lets go of it. */
async function build(config: ResolvedProxy): Promise<void> {
  const log = createRecordingLog()
  const services = createServices({ ...config, stsEndpoint: undefined, env: {}, log, clock: createManualClock() })
  const { runtime } = buildCandidate(config, 'https://mcp.example.com', services, await loadRooms(config))
  await runtime.close()
  await services.stores.close()
}

test('every setting of a parsed ProxyConfig is read while it is resolved, or handed on and read while routes are built', async () => {
  const loaded = load()
  const followed = recorded(loaded.proxies[0]?.document.spec)
  const proxies = loaded.proxies.map((located) => ({
    ...located,
    document: { ...located.document, spec: followed.value ?? located.document.spec },
  }))
  const { config } = resolveProxy({ ...loaded, proxies }, {})
  if (config === undefined) throw new Error('not resolved')
  await build(config)
  // Handed on to the listener, which opens the secret.
  expect(followed.unread().filter((name) => !name.startsWith('sessionKeySecretRef.'))).toEqual([])
})

/** What the listeners and the process read, when they open. */
const OF_PROCESS = /^(listen|admin|namespace|secretsDirectory|sessionKeySecretRef|maxCredentials|warnings)\b/
/** What is judged while loading, and what says whose a failure is or is needed for an opaque token only. */
const NOT_BUILT = new Set(
  [
    'insecureAllowAnonymous',
    'callers.oauth.providers[].insecureAllowHttp',
    'callers.oauth.providers[].clientId',
    ...['name', 'namespace', 'configHash', 'source.file', 'source.line', 'upstream'].map((name) => `auth.${name}`),
  ].map((name) => `routes[].${name}`),
)

test('every setting of a resolved route is read while it is built', async () => {
  const { config } = resolveProxy(load(), {})
  if (config === undefined) throw new Error('not resolved')
  const followed = recorded<ResolvedProxy>(config)
  await build(followed.value)
  const unread = followed.unread().filter((name) => !OF_PROCESS.test(name) && !NOT_BUILT.has(name))
  expect(unread).toEqual([])
})
