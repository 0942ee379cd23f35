import { afterEach, expect, test, vi } from 'vitest'
import { openMetrics } from '../../src/report/metrics.ts'
import type { KubeObject } from '../../src/kube/index.ts'
import { type Controller, createController } from '../../src/operator/controller.ts'
import { ownTypes } from '../../src/operator/index.ts'
import { onlyThatItIs } from '../../src/operator/observed.ts'
import { silentLog } from '../kube/manual-timers.ts'
import { createFakeCluster, type FakeCluster } from './fake-cluster.ts'

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

/** A controller that leads, before its first look. */
function startController({ client }: FakeCluster): Controller {
  const controller = createController({
    client,
    types: ownTypes('extauth.dev'),
    settings: { apiGroup: 'extauth.dev', image: 'mcp-extauth:test', restrictPodTemplate: false, secretsByLabel: false },
    namespace: undefined,
    watchSecrets: false,
    ownsKinds: true,
    writesStatus: true,
    isLeader: () => true,
    instance: 'test',
    clock: { now: () => Date.now() },
    log: silentLog,
    metrics: openMetrics(),
  })
  closers.push(() => controller.close())
  return controller
}

const object = (kind: string, name: string, spec: object): KubeObject => ({
  apiVersion: 'extauth.dev/v1alpha1',
  kind,
  metadata: { name, namespace: 'n' },
  spec,
})
const config = (name: string, providerName = 'github'): KubeObject =>
  object('MCPExternalAuthConfig', name, { type: 'upstreamInject', upstreamInject: { providerName } })
const entry = (name: string, configName: string): KubeObject =>
  object('MCPServerEntry', name, { remoteUrl: 'https://a.example.com', externalAuthConfigRef: { name: configName } })
const statusWrites = ({ writes }: FakeCluster): string[] => writes.filter((write) => write.includes('/status'))

test('nothing is decided before every collection is read, and one write then says all', async () => {
  const cluster = createFakeCluster()
  cluster.put(config('c'))
  cluster.put(entry('e', 'c'))
  const release = cluster.holdList('MCPServerEntry')
  const controller = startController(cluster)
  await vi.waitFor(() => expect(controller.observed.configs()).toHaveLength(1))
  // A change that comes while workloads are not read yet: nobody knows who refers to it.
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
  const controller = startController(cluster)
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
  const controller = startController(cluster)
  await controller.observed.synced
  controller.start()
  await vi.waitFor(() => expect(statusWrites(cluster)).toHaveLength(names.length))
  const before = cluster.writes.lastIndexOf('apply MCPExternalAuthConfig/status c-59')
  expect(cluster.writes.slice(0, before).filter((write) => write.includes(' Event ')).length).toBeLessThan(10)
  await controller.idle()
  // Valid and Ready of each.
  expect(cluster.writes.filter((write) => write.includes(' Event '))).toHaveLength(2 * names.length)
})

test('a workload that only has another status makes nobody look at its config', async () => {
  const cluster = createFakeCluster()
  cluster.put(config('c'))
  cluster.put(entry('e', 'c'))
  const controller = startController(cluster)
  await controller.observed.synced
  controller.start()
  await controller.idle()
  const looks = vi.spyOn(controller.observed, 'config')
  cluster.put({ ...entry('e', 'c'), status: { phase: 'Ready' } })
  await vi.waitFor(() => expect(controller.observed.workloads('MCPServerEntry')[0]?.status).toBeDefined())
  await controller.idle()
  expect(looks).not.toHaveBeenCalled()
  cluster.put(entry('f', 'c'))
  await vi.waitFor(() =>
    expect(controller.observed.config('n', 'c')?.status).toHaveProperty('referencingWorkloads.length', 2),
  )
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
