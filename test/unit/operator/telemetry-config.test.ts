import { afterEach, expect, test } from 'vitest'
import { createFakeCluster } from '../../support/operator/fake-cluster.ts'
import { object } from '../../support/operator/objects.ts'
import { telemetryConfigRef, traces } from '../../support/operator/shared-configs.ts'
import { closeAll, type Closers, startController } from '../../support/operator/start-controller.ts'

// The effect of an MCPTelemetryConfig on pods of a proxy. Common behavior is in shared-configs.test.ts.
const closers: Closers = []
afterEach(() => closeAll(closers))

const auth = object('MCPExternalAuthConfig', 'traces', { type: 'unauthenticated' })
const proxyWith = (more: object) =>
  object('MCPRemoteProxy', 'p', {
    remoteUrl: 'https://api.example.com/mcp',
    externalAuthConfigRef: { name: 'traces' },
    auth: { mode: 'anonymous' },
    ...more,
  })

test('pods of a proxy get the document, its secret, its authorities and a way to its receiver', async () => {
  const cluster = createFakeCluster()
  for (const one of [auth, traces(), proxyWith({ telemetryConfigRef })]) cluster.put(one)
  await startController(cluster, closers)
  const files = cluster.stored('ConfigMap', 'n/p-extauth')?.['data'] as Readonly<Record<string, string>>
  expect(files['telemetry-traces.yaml']).toContain('otel.observability.svc:4318')
  expect(files['route.yaml']).toContain('serviceName: measured')
  const written = (kind: string): string => JSON.stringify(cluster.stored(kind, 'n/p-extauth'))
  expect(written('Deployment')).toContain('"secretName":"otel"')
  expect(written('Deployment')).toContain('"key":"ca.crt"')
  expect(written('NetworkPolicy')).toContain('4318')
  cluster.put(traces({ endpoint: 'other.observability.svc:4319' }))
  await expect.poll(() => JSON.stringify(cluster.stored('ConfigMap', 'n/p-extauth')?.['data'])).toContain('4319')
  await expect.poll(() => written('NetworkPolicy')).toContain('4319')
})

test('a receiver that a proxy names itself is reached too', async () => {
  const cluster = createFakeCluster()
  const openTelemetry = { enabled: true, endpoint: 'https://otel.example.com:4400', tracing: { enabled: true } }
  for (const one of [auth, proxyWith({ telemetry: { openTelemetry } })]) cluster.put(one)
  await startController(cluster, closers)
  expect(JSON.stringify(cluster.stored('NetworkPolicy', 'n/p-extauth'))).toContain('4400')
  expect(JSON.stringify(cluster.stored('ConfigMap', 'n/p-extauth'))).toContain('otel.example.com')
})
