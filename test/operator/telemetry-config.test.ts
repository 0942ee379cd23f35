import { afterEach, expect, test } from 'vitest'
import type { KubeObject } from '../../src/kube/index.ts'
import { createFakeCluster, type FakeCluster } from './fake-cluster.ts'
import { closeAll, type Closers, startController } from './start-controller.ts'

// An MCPTelemetryConfig in a cluster: what its status says, what its workloads are told, and what pods of a proxy get of it.
const closers: Closers = []
afterEach(() => closeAll(closers))

const start = (cluster: FakeCluster) => startController(cluster, closers)

const object = (kind: string, name: string, spec: object): KubeObject => ({
  apiVersion: 'extauth.dev/v1beta1',
  kind,
  metadata: { name, namespace: 'n' },
  spec,
})
const traces = (more: object = {}): KubeObject =>
  object('MCPTelemetryConfig', 'traces', {
    openTelemetry: {
      enabled: true,
      endpoint: 'otel.observability.svc:4318',
      sensitiveHeaders: [{ name: 'Authorization', secretKeyRef: { name: 'otel', key: 'token' } }],
      caBundleRef: { configMapRef: { name: 'ca', key: 'ca.crt' } },
      tracing: { enabled: true },
      ...more,
    },
  })
const telemetryConfigRef = { name: 'traces', serviceName: 'measured' }
const auth = object('MCPExternalAuthConfig', 'traces', { type: 'unauthenticated' })
const proxyWith = (more: object): KubeObject =>
  object('MCPRemoteProxy', 'p', {
    remoteUrl: 'https://api.example.com/mcp',
    externalAuthConfigRef: { name: 'traces' },
    auth: { mode: 'anonymous' },
    ...more,
  })
const proxy = proxyWith({ telemetryConfigRef })

interface Status {
  readonly [field: string]: unknown
  readonly conditions?: readonly { readonly type: string; readonly status: string; readonly reason: string }[]
}
const statusOf = (one: KubeObject | undefined): Status => (one?.status ?? {}) as Status
const conditionsOf = (one: KubeObject | undefined): string[] =>
  (statusOf(one).conditions ?? []).map(({ type, status, reason }) => `${type} ${status} ${reason}`)

test('its status has its hash and who refers to it, and its deletion waits for them', async () => {
  const cluster = createFakeCluster()
  cluster.put(traces())
  cluster.put(object('MCPServer', 's', { image: 'x', telemetryConfigRef }))
  cluster.put(object('VirtualMCPServer', 'v', { incomingAuth: { type: 'anonymous' }, telemetryConfigRef }))
  const { observed } = await start(cluster)
  const config = observed.shared('MCPTelemetryConfig', 'n', 'traces')
  if (config === undefined) throw new Error('it is there')
  expect(config.metadata.finalizers).toEqual(['extauth.dev/telemetry-references'])
  expect(statusOf(config)).toMatchObject({
    configHash: expect.stringMatching(/^[0-9a-f]+$/) as string,
    referenceCount: 2,
    referencingWorkloads: [
      { kind: 'MCPServer', name: 's' },
      { kind: 'VirtualMCPServer', name: 'v' },
    ],
  })
  expect(conditionsOf(config)).toContain('Valid True ValidationSucceeded')
  expect(conditionsOf(observed.workload('MCPServer', 'n', 's'))).toContain(
    'TelemetryConfigRefValidated True TelemetryConfigRefValid',
  )
  cluster.put({ ...config, metadata: { ...config.metadata, deletionTimestamp: '2026-11-22T10:00:00Z' } })
  const now = () => observed.shared('MCPTelemetryConfig', 'n', 'traces')
  await expect.poll(() => conditionsOf(now())).toContain('DeletionBlocked True ReferencedByWorkloads')
  cluster.put(object('MCPServer', 's', { image: 'x' }))
  cluster.put(object('VirtualMCPServer', 'v', { incomingAuth: { type: 'anonymous' } }))
  await expect.poll(() => now()?.metadata.finalizers).toEqual([])
})

test.each([
  ['is not there', undefined, 'NotFound'],
  ['is not valid', traces({ insecure: true }), 'Invalid'],
])('a workload whose MCPTelemetryConfig %s is told, and a proxy of it does not run', async (_what, config, reason) => {
  const cluster = createFakeCluster()
  for (const one of [auth, config, proxy, object('MCPServer', 's', { image: 'x', telemetryConfigRef })])
    if (one !== undefined) cluster.put(one)
  const { observed } = await start(cluster)
  for (const kind of ['MCPRemoteProxy', 'MCPServer'] as const) {
    const conditions = conditionsOf(observed.workload(kind, 'n', kind === 'MCPServer' ? 's' : 'p'))
    expect(conditions).toContain(`Ready False TelemetryConfigRef${reason}`)
    expect(conditions).toContain(`TelemetryConfigRefValidated False TelemetryConfigRef${reason}`)
  }
  expect(cluster.writes.filter((write) => write.includes('Deployment'))).toEqual([])
})

test('pods of a proxy get the document, its secret, its authorities and a way to its receiver', async () => {
  const cluster = createFakeCluster()
  for (const one of [auth, traces(), proxy]) cluster.put(one)
  const { observed } = await start(cluster)
  expect(conditionsOf(observed.workload('MCPRemoteProxy', 'n', 'p'))).toContain(
    'TelemetryConfigRefValidated True TelemetryConfigRefValid',
  )
  expect(statusOf(observed.workload('MCPRemoteProxy', 'n', 'p'))['telemetryConfigHash']).toBe(
    statusOf(observed.shared('MCPTelemetryConfig', 'n', 'traces'))['configHash'],
  )
  const files = cluster.stored('ConfigMap', 'n/p')?.['data'] as Readonly<Record<string, string>>
  expect(files['telemetry-traces.yaml']).toContain('otel.observability.svc:4318')
  expect(files['route.yaml']).toContain('serviceName: measured')
  const written = (kind: string): string => JSON.stringify(cluster.stored(kind, 'n/p'))
  expect(written('Deployment')).toContain('"secretName":"otel"')
  expect(written('Deployment')).toContain('"key":"ca.crt"')
  expect(written('NetworkPolicy')).toContain('4318')
  cluster.put(traces({ endpoint: 'other.observability.svc:4319' }))
  await expect.poll(() => JSON.stringify(cluster.stored('ConfigMap', 'n/p')?.['data'])).toContain('4319')
  await expect.poll(() => written('NetworkPolicy')).toContain('4319')
})

test('a receiver that a proxy names itself is reached too', async () => {
  const cluster = createFakeCluster()
  const openTelemetry = { enabled: true, endpoint: 'https://otel.example.com:4400', tracing: { enabled: true } }
  for (const one of [auth, proxyWith({ telemetry: { openTelemetry } })]) cluster.put(one)
  await start(cluster)
  expect(JSON.stringify(cluster.stored('NetworkPolicy', 'n/p'))).toContain('4400')
  expect(JSON.stringify(cluster.stored('ConfigMap', 'n/p'))).toContain('otel.example.com')
})
