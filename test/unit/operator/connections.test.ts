import { afterEach, describe, expect, test } from 'vitest'
import { unfitForPods } from '../../../src/operator/index.ts'
import { createFakeCluster } from '../../support/operator/fake-cluster.ts'
import { conditionOf, object } from '../../support/operator/objects.ts'
import { closeAll, type Closers, operate, startController } from '../../support/operator/start-controller.ts'

const closers: Closers = []
afterEach(() => closeAll(closers))

const ISSUER = 'https://idp.example.com:8443'
const inject = object('MCPExternalAuthConfig', 'github', {
  type: 'upstreamInject',
  upstreamInject: { providerName: 'github' },
})
const github = {
  name: 'github',
  type: 'oauth2',
  oauth2Config: {
    authorizationEndpoint: 'https://github.example.com/authorize',
    tokenEndpoint: 'https://github.example.com:9443/token',
    clientId: 'c',
    clientSecretRef: { name: 'github', key: 'secret' },
  },
}
const store = {
  type: 'kvstore',
  kvstore: { aclUserConfig: { passwordSecretRef: { name: 'redis', key: 'password' } }, addr: 'redis:6380' },
}
const login = [{ issuerUrl: ISSUER, clientId: 'connect', clientSecretRef: { name: 'connect', key: 'secret' } }]
const shared = { storage: store, keySecretRefs: [{ name: 'seal', key: 'now' }] }
const proxyWith = (connections: object, more: object = {}) =>
  object('MCPRemoteProxy', 'p', {
    remoteUrl: 'https://api.example.com/mcp',
    externalURL: 'https://mcp.example.com',
    externalAuthConfigRef: { name: 'github' },
    oidcConfig: { type: 'inline', inline: { issuer: ISSUER, audience: 'mcp' } },
    connections: { login, providers: [github], ...connections },
    ...more,
  })

describe('pods of a proxy with connections', () => {
  test('get the section, its secrets, and a way to each service and to the store', async () => {
    const cluster = createFakeCluster()
    for (const one of [inject, proxyWith(shared)]) cluster.put(one)
    await startController(cluster, closers)
    const files = cluster.stored('ConfigMap', 'n/p-extauth')?.['data'] as Readonly<Record<string, string>>
    expect(files['route.yaml']).toContain('name: github')
    const written = (kind: string): string => JSON.stringify(cluster.stored(kind, 'n/p-extauth'))
    for (const secret of ['github', 'connect', 'redis', 'seal'])
      expect(written('Deployment')).toContain(`"secretName":"${secret}"`)
    for (const port of [443, 6380, 8443, 9443]) expect(written('NetworkPolicy')).toContain(`{"port":${port},`)
  })

  test('reach authorization servers that are discovered later', async () => {
    const cluster = createFakeCluster()
    const bearer = { type: 'bearerToken', bearerToken: { connectionName: 'notes' } }
    const providers = [{ name: 'notes', type: 'mcp', mcp: {} }]
    const proxy = proxyWith({ providers }, { remoteUrl: 'http://notes.tools.svc:7000/mcp' })
    for (const one of [object('MCPExternalAuthConfig', 'github', bearer), proxy]) cluster.put(one)
    await startController(cluster, closers)
    const policy = JSON.stringify(cluster.stored('NetworkPolicy', 'n/p-extauth'))
    for (const port of [443, 7000]) expect(policy).toContain(`{"port":${port},`)
  })

  test('are not made for an unknown connection', async () => {
    const cluster = createFakeCluster()
    const gitlab = { type: 'upstreamInject', upstreamInject: { providerName: 'gitlab' } }
    for (const one of [object('MCPExternalAuthConfig', 'github', gitlab), proxyWith({})]) cluster.put(one)
    await startController(cluster, closers)
    expect(conditionOf(cluster.stored('MCPRemoteProxy', 'n/p'), 'Ready')).toMatchObject({
      reason: 'SpecInvalid',
      message: expect.stringContaining('"github"') as string,
    })
    expect(cluster.stored('Deployment', 'n/p-extauth')).toBeUndefined()
  })

  test.each([
    [{}, 1, ['False', 'SessionStorageNotRequired', 'one pod keeps all connections']],
    [
      {},
      2,
      [
        'True',
        'SessionStorageMissing',
        '2 pods keep connections in memory, each its own; set "storage" of connections, or replicas: 1',
      ],
    ],
    [shared, 2, ['False', 'SessionStorageConfigured', 'connections are kept in a store']],
  ])('with storage %o and %i replicas: SessionStorageWarning', async (storage, replicas, expected) => {
    const cluster = createFakeCluster()
    for (const one of [inject, proxyWith(storage, { replicas })]) cluster.put(one)
    await startController(cluster, closers)
    const found = conditionOf(cluster.stored('MCPRemoteProxy', 'n/p'), 'SessionStorageWarning')
    expect([found?.status, found?.reason, found?.message]).toEqual(expected)
  })
})

describe('admission of a proxy with connections', () => {
  const review = async (proxy: ReturnType<typeof object>, secretsByLabel = false) => {
    const cluster = createFakeCluster()
    cluster.put(inject)
    cluster.put({ ...object('Secret', 'seal', {}), apiVersion: 'v1' })
    const { decisions } = await operate(cluster, closers, { restrictPodTemplate: false, secretsByLabel })
    const kind = { group: 'extauth.dev', version: 'v1beta1', kind: 'MCPRemoteProxy' }
    const request = { uid: 'u', kind, namespace: 'n', operation: 'CREATE', object: proxy, isDryRun: false }
    return decisions.validate(request, new AbortController().signal)
  }
  const callers = { oidcConfig: undefined, oidcConfigRef: { name: 'corp', audience: 'mcp' } }

  test('lets it in, and warns about memory', async () => {
    expect(await review(proxyWith({}))).toEqual({
      allowed: true,
      warnings: [expect.stringMatching(/^spec.connections.storage: missing: connections are kept in memory/) as string],
    })
    expect(await review(proxyWith(shared))).toEqual({ allowed: true, warnings: [] })
  })

  test('does not judge the login of callers that another object defines', async () => {
    expect(await review(proxyWith(shared, callers))).toMatchObject({ allowed: true })
  })

  test.each<[string, object, object, string]>([
    ['no URL for browsers', {}, { externalURL: undefined }, 'spec.connections.baseUrl: missing'],
    ['a single user', { singleUser: true }, {}, 'spec.connections.singleUser'],
    [
      'a login that no caller has',
      { login: [{ issuerUrl: 'https://other.example.com', clientId: 'c' }] },
      {},
      'no route accepts callers of https://other.example.com',
    ],
    ['a store without keys', { storage: store }, {}, 'spec.connections.keySecretRefs: missing'],
    ['an unknown field', { provider: [] }, {}, 'spec.connections'],
    ['a broken section beside a reference', { baseUrl: 'https://a/' }, callers, 'trailing slash'],
  ])('rejects %s', async (_what, connections, more, message) => {
    expect(await review(proxyWith(connections, more))).toMatchObject({
      allowed: false,
      message: expect.stringContaining(message) as string,
    })
  })

  test('with --secrets-by-label rejects a secret without the label', async () => {
    expect(await review(proxyWith(shared), true)).toMatchObject({
      allowed: false,
      message: expect.stringContaining('"seal"') as string,
    })
  })
})

test('a sidecar has no connections', () => {
  const header = {
    type: 'headerInjection',
    headerInjection: { headerName: 'X-Key', connectionName: 'tracker' },
  } as const
  expect(unfitForPods(header)).toContain('"tracker"; use an MCPRemoteProxy with connections')
  const valueSecretRef = { name: 'a', key: 'b' }
  expect(unfitForPods({ type: 'headerInjection', headerInjection: { headerName: 'X-Key', valueSecretRef } })).toBe(
    undefined,
  )
})
