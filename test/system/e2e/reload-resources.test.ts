import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { CONTAINER_PATH, startLabMetadata } from '../../../lab/index.ts'
import { jwks, rsaKey, signed, type TestKey } from '../../support/authenticate/keys.ts'
import { credentialsXml, type StsDouble, startStsDouble } from '../../support/obtain/cloud-sts/support/sts-double.ts'
import { startReceiver } from '../../support/telemetry/receiver.ts'
import { createManualClock, monotonicOf } from '../../support/ports.ts'
import { type RedisProcess, startRedis } from '../../support/redis/server.ts'
import { APPLICATION, OPERATOR } from '../../support/redis/deployment.ts'
import { operate } from '../../support/redis/operator.ts'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'
import { authConfig, configFolder, proxyConfig, run, type RunningTestProxy } from '../../support/e2e/run.ts'

const HOUR = 3_600_000
const LIFE_MS = HOUR
const ROLE = 'arn:aws:iam::123456789012:role'

const sockets = createSockets()
const clock = createManualClock()
let proxy: RunningTestProxy
let metadata: Awaited<ReturnType<typeof startLabMetadata>>
let sts: StsDouble
let redis: RedisProcess
let issuer = ''
let keys: TestKey
/** Numbers the credentials of all services. */
let made = 0

const caller = async (): Promise<string> => {
  const now = Math.floor(clock.now() / 1_000)
  const claims = { iss: issuer, aud: 'proxy', sub: 'ada', iat: now, exp: now + 600 }
  return `Bearer ${await signed(keys, { alg: 'RS256', kid: keys.jwk.kid }, claims)}`
}

/** The credential that the backend received, or what the proxy answered instead. */
async function seen(route: string): Promise<string> {
  const headers = { authorization: await caller(), 'content-type': 'application/json' }
  const response = await fetch(`${proxy.url}/${route}`, { method: 'POST', headers, body: '{}' })
  const text = await response.text()
  return response.status === 200 ? text : `${response.status} ${text}`
}

const CLIENT = { clientId: 'proxy', clientSecretRef: { name: 'idp', key: 'secret' } }

beforeAll(async () => {
  keys = await rsaKey({ kid: 'first', alg: 'RS256', use: 'sig' })
  issuer = await sockets.http((request, response) => {
    const send = (body: object): void => {
      response.setHeader('content-type', 'application/json').end(JSON.stringify(body))
    }
    request.resume()
    const { url = '' } = request
    if (url.includes('openid-configuration')) return send({ issuer, jwks_uri: `${issuer}/keys` })
    if (url === '/keys') return send(jwks([keys]))
    made += 1
    const issued_token_type = 'urn:ietf:params:oauth:token-type:access_token'
    return send({ access_token: `${url.slice(1)}-${made}`, token_type: 'Bearer', expires_in: 3_600, issued_token_type })
  })
  metadata = sockets.closing(
    await startLabMetadata({
      port: 0,
      roleName: 'node',
      containerToken: 'of-the-pod',
      credentials: () => ({
        accessKeyId: `ASIAPROCESS${String((made += 1)).padStart(9, '0')}`,
        secretAccessKey: 'secret',
        sessionToken: 'session',
        expiresAtMs: clock.now() + LIFE_MS,
      }),
    }),
  )
  sts = sockets.closing(await startStsDouble())
  sts.answer = (form) => ({
    body: credentialsXml({
      action: 'AssumeRole',
      accessKeyId: `ASIA${form.get('RoleArn')?.endsWith('hub') === true ? 'HUB' : 'ROLE'}${String((made += 1)).padStart(12, '0')}`,
      expiration: new Date(clock.now() + LIFE_MS).toISOString(),
    }),
  })
  redis = sockets.closing(
    await startRedis({
      config: [APPLICATION, OPERATOR].map(({ username, password }) => `user ${username} on >${password} ~* &* +@all`),
    }),
  )
  const backend = await sockets.http((request, response) => {
    request.resume()
    const { authorization = '' } = request.headers
    response.end(/Credential=([^/]+)/.exec(authorization)?.[1] ?? authorization)
  })
  const folder = await configFolder({ 'pod-token': 'of-the-pod' })
  sockets.closing({ close: folder.remove })
  const aws = { region: 'eu-central-1', service: 'execute-api', stsEndpoint: sts.url }
  const ambient = { type: 'ambient', chain: ['podIdentity'] }
  const through = { roleArn: `${ROLE}/hub`, source: ambient }
  const configs: Readonly<Record<string, object>> = {
    own: { type: 'clientCredentials', clientCredentials: { tokenUrl: `${issuer}/own`, ...CLIENT } },
    actor: {
      type: 'tokenExchange',
      tokenExchange: {
        tokenUrl: `${issuer}/exchanged`,
        audience: 'backend',
        ...CLIENT,
        actor: { clientCredentials: { tokenUrl: `${issuer}/actor`, ...CLIENT } },
      },
    },
    // In another region, so that the hub is the only holder of the identity that it comes from.
    process: { type: 'cloudSts', cloudSts: { ...aws, region: 'eu-west-1', source: ambient } },
    hub: {
      type: 'cloudSts',
      cloudSts: { ...aws, fallbackRoleArn: `${ROLE}/reader`, source: { type: 'role', through } },
    },
  }
  const storage = {
    type: 'kvstore',
    kvstore: {
      addr: `127.0.0.1:${redis.port}`,
      aclUserConfig: {
        usernameSecretRef: { name: 'redis', key: 'username' },
        passwordSecretRef: { name: 'redis', key: 'password' },
      },
    },
  }
  proxy = sockets.closing(
    await run(
      {
        ...Object.fromEntries(Object.entries(configs).map(([name, spec]) => [`${name}.json`, authConfig(name, spec)])),
        'proxy.json': proxyConfig({
          auth: {
            mode: 'oauth',
            oauth: {
              resourceUrl: 'http://127.0.0.1/',
              providers: [{ name: 'idp', issuerUrl: issuer, audience: 'proxy' }],
            },
          },
          cache: { storage, keySecretRefs: [{ name: 'cache', key: 'seal' }] },
          routes: Object.keys(configs).map((name) => ({
            name,
            path: `/${name}`,
            target: `${backend}/mcp`,
            externalAuthConfigRef: { name },
          })),
        }),
        'secrets/idp/secret': 'a-secret',
        'secrets/redis/username': APPLICATION.username,
        'secrets/redis/password': APPLICATION.password,
        'secrets/cache/seal': 'a-sealing-secret-of-32-bytes-or-more',
      },
      {
        clock,
        monotonicClock: monotonicOf(clock),
        env: {
          AWS_CONTAINER_CREDENTIALS_FULL_URI: metadata.url + CONTAINER_PATH,
          AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: path.join(folder.directory, 'pod-token'),
        },
      },
    ),
  )
}, 60_000)
afterAll(() => sockets.closeAll())

const connections = async (): Promise<number> => {
  const info = await operate(redis.port, ['info', 'stats'])
  return Number(/total_connections_received:(\d+)/.exec(String(info))?.[1])
}

describe('what a reload must not take away', () => {
  const ROUTES = {
    own: /^Bearer own-/,
    actor: /^Bearer exchanged-/,
    process: /^ASIAPROCESS/,
    hub: /^ASIAROLE/,
  }

  it('credentials are renewed after two reloads and their expiry, and new signing keys are found', async () => {
    const before = new Map<string, string>()
    for (const [route, credential] of Object.entries(ROUTES)) {
      before.set(route, await seen(route))
      expect(before.get(route)).toMatch(credential)
    }
    for (const wait of [1_000, 1_000]) {
      expect(await proxy.reload()).toEqual({ ok: true })
      clock.advance(wait)
      for (const [route, credential] of Object.entries(ROUTES)) expect(await seen(route)).toMatch(credential)
    }
    for (let round = 0; round < 2; round++) {
      clock.advance(25 * HOUR)
      keys = await rsaKey({ kid: `round-${round}`, alg: 'RS256', use: 'sig' })
      for (const [route, credential] of Object.entries(ROUTES)) {
        const now = await seen(route)
        expect(now).toMatch(credential)
        expect(now).not.toBe(before.get(route))
        before.set(route, now)
      }
      expect(await proxy.reload()).toEqual({ ok: true })
    }
  }, 60_000)

  it('connections to the store of shared credentials stay open', async () => {
    await vi.waitFor(async () => expect(await connections()).toBeGreaterThan(1))
    // The operator's own connection is one more each time.
    const before = await connections()
    for (let round = 0; round < 3; round++) expect(await proxy.reload()).toEqual({ ok: true })
    expect((await connections()) - before).toBe(1)
  }, 30_000)

  it('a trace receiver still gets spans, with the secret that it has now', async () => {
    const receiver = sockets.closing(await startReceiver({ tls: TLS.server }))
    const backend = await sockets.http((request, response) => void (request.resume(), response.end('{}')))
    const document = (kind: string, name: string, spec: object) => ({
      apiVersion: 'toolhive.stacklok.dev/v1beta1',
      kind,
      metadata: { name },
      spec,
    })
    const openTelemetry = {
      enabled: true,
      tracing: { enabled: true, samplingRate: '1' },
      endpoint: receiver.url,
      sensitiveHeaders: [{ name: 'Authorization', secretKeyRef: { name: 'otel', key: 'token' } }],
      caBundleRef: { configMapRef: { name: 'company-ca', key: 'ca.crt' } },
    }
    const items = [
      document('MCPTelemetryConfig', 'traces', { openTelemetry }),
      document('MCPRemoteProxy', 'tools', { remoteUrl: `${backend}/mcp`, telemetryConfigRef: { name: 'traces' } }),
    ]
    const traced = await run({
      'all.json': JSON.stringify({ apiVersion: 'v1', kind: 'List', items }),
      'secrets/otel/token': 'Bearer first',
      'secrets/company-ca/ca.crt': TLS.ca,
    })
    try {
      for (let round = 0; round < 2; round++) expect(await traced.reload()).toEqual({ ok: true })
      await traced.write('secrets/otel/token', 'Bearer second')
      await vi.waitFor(
        () => expect(traced.log.lines.filter((line) => /otel.*secret loaded/.test(line))).toHaveLength(2),
        10_000,
      )
      expect((await fetch(traced.url)).status).toBe(200)
    } finally {
      // The rest is exported.
      await traced.close()
    }
    expect(receiver.requests.at(-1)?.headers.authorization).toBe('Bearer second')
  }, 30_000)
})
