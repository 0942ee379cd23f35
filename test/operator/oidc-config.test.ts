import { afterEach, expect, test } from 'vitest'
import type { KubeObject } from '../../src/kube/index.ts'
import { createFakeCluster, type FakeCluster } from './fake-cluster.ts'
import { closeAll, type Closers, startController } from './start-controller.ts'

// An MCPOIDCConfig in a cluster: what its status says, what its workloads are told, and what pods of a proxy get of it.
const closers: Closers = []
afterEach(() => closeAll(closers))

const start = (cluster: FakeCluster) => startController(cluster, closers)

const object = (kind: string, name: string, spec: object): KubeObject => ({
  apiVersion: 'extauth.dev/v1beta1',
  kind,
  metadata: { name, namespace: 'n' },
  spec,
})
const inline = (more: object = {}): KubeObject =>
  object('MCPOIDCConfig', 'corp', {
    type: 'inline',
    inline: {
      issuer: 'https://idp.example.com:8443',
      clientId: 'a',
      clientSecretRef: { name: 'oidc', key: 'secret' },
      caBundleRef: { configMapRef: { name: 'ca', key: 'ca.crt' } },
      ...more,
    },
  })
const oidcConfigRef = { name: 'corp', audience: 'mcp', resourceUrl: 'https://mcp.example.com' }
const auth = object('MCPExternalAuthConfig', 'corp', { type: 'unauthenticated' })
const proxy = object('MCPRemoteProxy', 'p', {
  remoteUrl: 'https://api.example.com/mcp',
  externalAuthConfigRef: { name: 'corp' },
  oidcConfigRef,
})

interface Status {
  readonly [field: string]: unknown
  readonly conditions?: readonly { readonly type: string; readonly status: string; readonly reason: string }[]
}
const statusOf = (one: KubeObject | undefined): Status => (one?.status ?? {}) as Status
const conditionsOf = (one: KubeObject | undefined): string[] =>
  (statusOf(one).conditions ?? []).map(({ type, status, reason }) => `${type} ${status} ${reason}`)

test('its status has its hash, who refers to it, and no word of pods that nobody injects it into', async () => {
  const cluster = createFakeCluster()
  cluster.put(inline())
  cluster.put(object('MCPServer', 's', { image: 'x', oidcConfigRef }))
  cluster.put(object('VirtualMCPServer', 'v', { incomingAuth: { type: 'oidc', oidcConfigRef } }))
  const { observed } = await start(cluster)
  const config = observed.shared('MCPOIDCConfig', 'n', 'corp')
  expect(config?.metadata.finalizers).toEqual(['extauth.dev/oidc-references'])
  expect(statusOf(config)).toMatchObject({
    configHash: expect.stringMatching(/^[0-9a-f]+$/) as string,
    referenceCount: 2,
    referencingWorkloads: [
      { kind: 'MCPServer', name: 's' },
      { kind: 'VirtualMCPServer', name: 'v' },
    ],
  })
  expect(conditionsOf(config)).toEqual([
    'Valid True ValidationSucceeded',
    'SecretsResolved Unknown SecretsNotWatched',
    'Ready True ConfigReady',
    'DeletionBlocked False NotReferenced',
  ])
  expect(conditionsOf(observed.workload('MCPServer', 'n', 's'))).toContain(
    'OIDCConfigRefValidated True OIDCConfigRefValid',
  )
})

test('a deletion waits until nothing refers to it', async () => {
  const cluster = createFakeCluster()
  cluster.put(inline())
  cluster.put(object('MCPServer', 's', { image: 'x', oidcConfigRef }))
  const controller = await start(cluster)
  const stored = controller.observed.shared('MCPOIDCConfig', 'n', 'corp')
  if (stored === undefined) throw new Error('it is there')
  cluster.put({ ...stored, metadata: { ...stored.metadata, deletionTimestamp: '2026-11-22T10:00:00Z' } })
  await expect
    .poll(() => conditionsOf(controller.observed.shared('MCPOIDCConfig', 'n', 'corp')))
    .toContain('DeletionBlocked True ReferencedByWorkloads')
  cluster.put(object('MCPServer', 's', { image: 'x' }))
  await expect.poll(() => controller.observed.shared('MCPOIDCConfig', 'n', 'corp')?.metadata.finalizers).toEqual([])
})

test.each([
  ['is not there', undefined, 'NotFound'],
  ['is not valid', inline({ issuer: 'http://idp.example.com' }), 'Invalid'],
])('a workload whose MCPOIDCConfig %s is told, and a proxy of it does not run', async (_what, config, reason) => {
  const cluster = createFakeCluster()
  cluster.put(auth)
  if (config !== undefined) cluster.put(config)
  cluster.put(proxy)
  cluster.put(object('MCPServer', 's', { image: 'x', oidcConfigRef }))
  const { observed } = await start(cluster)
  for (const kind of ['MCPRemoteProxy', 'MCPServer'] as const) {
    const conditions = conditionsOf(observed.workload(kind, 'n', kind === 'MCPServer' ? 's' : 'p'))
    expect(conditions).toContain(`Ready False OIDCConfigRef${reason}`)
    expect(conditions).toContain(`OIDCConfigRefValidated False OIDCConfigRef${reason}`)
  }
  expect(cluster.writes.filter((write) => write.includes('Deployment'))).toEqual([])
  if (config === undefined) return
  expect(conditionsOf(observed.shared('MCPOIDCConfig', 'n', 'corp'))).toContain('Valid False ValidationFailed')
})

test('pods of a proxy get the document, its keys, and ways to its provider', async () => {
  const cluster = createFakeCluster()
  for (const one of [auth, inline(), proxy]) cluster.put(one)
  const { observed } = await start(cluster)
  expect(conditionsOf(observed.workload('MCPRemoteProxy', 'n', 'p'))).toContain(
    'OIDCConfigRefValidated True OIDCConfigRefValid',
  )
  expect(statusOf(observed.workload('MCPRemoteProxy', 'n', 'p'))['oidcConfigHash']).toBe(
    statusOf(observed.shared('MCPOIDCConfig', 'n', 'corp'))['configHash'],
  )
  const written = (kind: string): string => JSON.stringify(cluster.stored(kind, 'n/p'))
  // Both configs have one name.
  expect(Object.keys(cluster.stored('ConfigMap', 'n/p')?.data as object)).toEqual(
    expect.arrayContaining(['auth-corp.yaml', 'oidc-corp.yaml']),
  )
  expect(written('Deployment')).toContain('"secretName":"oidc"')
  expect(written('Deployment')).toContain('"key":"ca.crt"')
  expect(written('Deployment')).not.toContain('serviceAccountToken"')
  expect(written('NetworkPolicy')).toContain('8443')
})

test('who asks the API server for its keys gets a token of its service account', async () => {
  const cluster = createFakeCluster()
  cluster.put(auth)
  cluster.put(object('MCPOIDCConfig', 'corp', { type: 'kubernetesServiceAccount', kubernetesServiceAccount: {} }))
  cluster.put(proxy)
  await start(cluster)
  expect(JSON.stringify(cluster.stored('Deployment', 'n/p'))).toContain('"serviceAccountToken":{')
})

test('a change of it reaches the pods of its proxies', async () => {
  const cluster = createFakeCluster()
  for (const one of [auth, inline(), proxy]) cluster.put(one)
  await start(cluster)
  const before = JSON.stringify(cluster.stored('ConfigMap', 'n/p')?.data)
  cluster.put(inline({ issuer: 'https://other.example.com' }))
  await expect.poll(() => JSON.stringify(cluster.stored('ConfigMap', 'n/p')?.data)).not.toBe(before)
  expect(JSON.stringify(cluster.stored('ConfigMap', 'n/p')?.data)).toContain('https://other.example.com')
})
