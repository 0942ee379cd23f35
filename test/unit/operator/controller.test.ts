import { afterEach, expect, test, vi } from 'vitest'
import { openMetrics } from '../../../src/report/metrics.ts'
import type { KubeObject } from '../../../src/kube/index.ts'
import { onlyThatItIs } from '../../../src/operator/observed.ts'
import { createFakeCluster, type FakeCluster } from '../../support/operator/fake-cluster.ts'
import { conditionOf, object } from '../../support/operator/objects.ts'
import { closeAll, type Closers, openController, startController } from '../../support/operator/start-controller.ts'

const closers: Closers = []
afterEach(() => closeAll(closers))

const config = (name: string, providerName = 'github'): KubeObject =>
  object('MCPExternalAuthConfig', name, { type: 'upstreamInject', upstreamInject: { providerName } })
const entry = (name: string, configName: string): KubeObject =>
  object('MCPServerEntry', name, { remoteUrl: 'https://a.example.com', externalAuthConfigRef: { name: configName } })
const statusWrites = ({ writes }: FakeCluster): string[] => writes.filter((write) => write.includes('Config/status'))

test('nothing is decided before every collection is read, and one write then says all', async () => {
  const cluster = createFakeCluster()
  cluster.put(config('c'))
  cluster.put(entry('e', 'c'))
  const release = cluster.holdList('MCPServerEntry')
  const controller = openController(cluster, closers)
  await vi.waitFor(() => expect(controller.observed.configs()).toHaveLength(1))
  // A change that arrives before workloads were read: its references are unknown.
  cluster.put(config('c', 'gitlab'))
  await vi.waitFor(() => expect(controller.observed.config('n', 'c')?.metadata.generation).toBe(2))
  await controller.idle()
  expect(cluster.writes).toEqual([])
  release()
  await controller.observed.synced
  controller.start()
  await vi.waitFor(() => expect(statusWrites(cluster)).toHaveLength(1))
  await controller.idle()
  expect(controller.observed.config('n', 'c')?.status).toMatchObject({
    observedGeneration: 2,
    referencingWorkloads: [{ kind: 'MCPServerEntry', name: 'e' }],
  })
  expect(statusWrites(cluster)).toHaveLength(1)
})

test('what was written is known at once: late events of it make no second write', async () => {
  const cluster = createFakeCluster()
  cluster.put(config('c'))
  const controller = openController(cluster, closers)
  await controller.observed.synced
  const release = cluster.holdEvents()
  controller.start()
  await controller.idle()
  const written = controller.observed.config('n', 'c')
  expect(written?.metadata.finalizers).toEqual(['extauth.dev/external-auth-references'])
  controller.start()
  await controller.idle()
  release()
  // The entry comes after the late events, so they have been heard when it has.
  cluster.put(config('d'))
  await vi.waitFor(() => expect(controller.observed.config('n', 'd')?.status).toBeDefined())
  await controller.idle()
  expect(statusWrites(cluster)).toEqual([
    'apply MCPExternalAuthConfig/status c',
    'apply MCPExternalAuthConfig/status d',
  ])
  expect(controller.observed.config('n', 'c')).toBe(written)
})

test('events are written when no object waits to be looked at any more', async () => {
  const cluster = createFakeCluster()
  const names = Array.from({ length: 60 }, (_, index) => `c-${index}`)
  for (const name of names) cluster.put(config(name))
  const controller = openController(cluster, closers)
  await controller.observed.synced
  controller.start()
  await vi.waitFor(() => expect(statusWrites(cluster)).toHaveLength(names.length))
  const before = cluster.writes.lastIndexOf('apply MCPExternalAuthConfig/status c-59')
  expect(cluster.writes.slice(0, before).filter((write) => write.includes(' Event ')).length).toBeLessThan(10)
  await controller.idle()
  // Valid and Ready of each.
  expect(cluster.writes.filter((write) => write.includes(' Event '))).toHaveLength(2 * names.length)
})

test('a status change of a workload causes no reconciliation of its config', async () => {
  const cluster = createFakeCluster()
  cluster.put(config('c'))
  cluster.put(entry('e', 'c'))
  const controller = await startController(cluster, closers)
  const looks = vi.spyOn(controller.observed, 'config')
  const status = controller.observed.workload('MCPServerEntry', 'n', 'e')?.status as object
  cluster.put({ ...entry('e', 'c'), status: { ...status, phase: 'Ready' } })
  const statusOf = () => controller.observed.workload('MCPServerEntry', 'n', 'e')?.status
  await vi.waitFor(() => expect(statusOf()).toHaveProperty('phase'))
  await controller.idle()
  expect(looks).not.toHaveBeenCalled()
  cluster.put(entry('f', 'c'))
  await vi.waitFor(() =>
    expect(controller.observed.config('n', 'c')?.status).toHaveProperty('referencingWorkloads.length', 2),
  )
})

test('workloads of other controllers get conditions about their configs', async () => {
  const cluster = createFakeCluster()
  cluster.put(entry('e', 'c'))
  cluster.put(object('VirtualMCPServer', 'v', { outgoingAuth: { default: { externalAuthConfigRef: { name: 'c' } } } }))
  const controller = openController(cluster, closers)
  await controller.observed.synced
  controller.start()
  const says = (kind: 'MCPServerEntry' | 'VirtualMCPServer', reason: string, status: string): Promise<void> =>
    vi.waitFor(() =>
      expect(controller.observed.workload(kind, 'n', kind === 'MCPServerEntry' ? 'e' : 'v')?.status).toMatchObject({
        observedGeneration: 1,
        conditions: [
          { type: 'Ready', status },
          { type: 'ExternalAuthConfigValidated', status, reason },
        ],
      }),
    )
  await says('MCPServerEntry', 'ExternalAuthConfigNotFound', 'False')
  await says('VirtualMCPServer', 'ExternalAuthConfigNotFound', 'False')
  cluster.put(object('MCPExternalAuthConfig', 'c', { type: 'bearerToken' }))
  await says('MCPServerEntry', 'ExternalAuthConfigInvalid', 'False')
  cluster.put(config('c'))
  await says('MCPServerEntry', 'ExternalAuthConfigValid', 'True')
  await says('VirtualMCPServer', 'ExternalAuthConfigValid', 'True')
})

test('pods that were injected for a config are named in its status, and those that run an old form', async () => {
  const cluster = createFakeCluster()
  const bearer = (key: string): KubeObject =>
    object('MCPExternalAuthConfig', 'c', { type: 'bearerToken', bearerToken: { tokenSecretRef: { name: 's', key } } })
  const pod = (name: string, image = 'mcp-extauth:test'): KubeObject => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'n',
      labels: { 'extauth.dev/inject': 'true' },
      annotations: { 'extauth.dev/external-auth': 'c' },
    },
    spec: {
      initContainers: [{ name: 'extauth', image }],
      volumes: [{ name: 'extauth-secret-s', secret: { secretName: 's', items: [{ key: 'one' }] } }],
    },
  })
  cluster.put(bearer('one'))
  const controller = openController(cluster, closers)
  await controller.observed.synced
  controller.start()
  const condition = () => conditionOf(controller.observed.config('n', 'c'), 'InjectedPodsCurrent')
  const says = (reason: string, message: string): Promise<void> =>
    vi.waitFor(() => expect(condition()).toMatchObject({ reason, message: expect.stringContaining(message) as string }))
  await says('NoInjectedPods', 'no pod')
  cluster.put(pod('a'))
  await says('PodsCurrent', 'injected pods: a')
  expect(controller.observed.config('n', 'c')?.status).toMatchObject({ referenceCount: 1 })
  cluster.put(pod('b', 'mcp-extauth:old'))
  await says('PodsOutdated', 'until they are recreated: b; current: a')
  cluster.put(bearer('two'))
  await says('PodsOutdated', 'until they are recreated: a, b')
})

test('nothing is kept of a Secret but that it is there', () => {
  const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': '{"data":{"value":"b2YtYS1zZWNyZXQ="}}' }
  const metadata = { name: 's', namespace: 'n', uid: 'u', resourceVersion: '7', labels: { a: 'b' }, annotations }
  expect(onlyThatItIs({ apiVersion: 'v1', kind: 'Secret', metadata })).toEqual({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 's', namespace: 'n', uid: 'u', resourceVersion: '7' },
  })
})

test('a Service that a URL names gives its port to the policy, and a namespace its image to the pods', async () => {
  const cluster = createFakeCluster()
  const spec = {
    remoteUrl: 'http://tools.other/mcp',
    resourceUrl: 'https://mcp.example.com',
    oidcConfig: { type: 'inline', inline: { issuer: 'https://idp.example.com', audience: 'mcp' } },
  }
  cluster.put(object('MCPRemoteProxy', 'p', spec))
  const controller = openController(cluster, closers)
  await controller.observed.synced
  controller.start()
  const policy = (): string => JSON.stringify(cluster.stored('NetworkPolicy', 'n/p-extauth')?.spec)
  await vi.waitFor(() => expect(policy()).toContain('{"port":80,"protocol":"TCP"}'))
  const metadata = { name: 'tools', namespace: 'other' }
  const ports = [{ port: 80, targetPort: 3000 }]
  cluster.put({ apiVersion: 'v1', kind: 'Service', metadata, spec: { clusterIP: '10.0.0.1', ports } })
  await vi.waitFor(() => expect(policy()).toContain('{"port":3000,"protocol":"TCP"}'))
  const annotations = { 'extauth.dev/proxy-image': 'registry.example.com/proxy:2' }
  cluster.put({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'n', annotations } })
  await vi.waitFor(() =>
    expect(JSON.stringify(cluster.stored('Deployment', 'n/p-extauth'))).toContain('registry.example.com/proxy:2'),
  )
  await controller.idle()
})

test('each object has a series that says whether it is ready, until it is deleted', async () => {
  const metrics = openMetrics()
  const cluster = createFakeCluster()
  cluster.put(entry('e', 'c'))
  const controller = openController(cluster, closers, { metrics })
  await controller.observed.synced
  controller.start()
  const series = (value: number) => `extauth_object_ready{name="e",namespace="n",kind="MCPServerEntry"} ${value}\n`
  await vi.waitFor(async () => expect(await metrics.render()).toContain(series(0)))
  cluster.put(config('c'))
  await vi.waitFor(async () => expect(await metrics.render()).toContain(series(1)))
  cluster.drop('MCPServerEntry', 'n/e')
  await vi.waitFor(async () => expect(await metrics.render()).not.toContain('name="e"'))
  expect(await metrics.render()).toContain('extauth_object_ready{name="c"')
})

test('what is counted begins at 0, for each kind', async () => {
  const metrics = openMetrics()
  openController(createFakeCluster(), closers, { metrics })
  const text = await metrics.render()
  for (const kind of ['MCPExternalAuthConfig', 'MCPOIDCConfig', 'MCPRemoteProxy', 'MCPServerEntry'])
    for (const outcome of ['ok', 'conflict', 'failed'])
      expect(text).toContain(`extauth_operator_reconciles_total{kind="${kind}",outcome="${outcome}"} 0\n`)
  for (const kind of ['MCPExternalAuthConfig', 'Pod', 'Deployment', 'Namespace'])
    for (const reason of ['expired', 'lost', 'refused'])
      expect(text).toContain(`extauth_operator_watch_restarts_total{kind="${kind}",reason="${reason}"} 0\n`)
})
