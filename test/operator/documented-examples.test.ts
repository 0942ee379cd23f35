import { afterEach, expect, test, vi } from 'vitest'
import { createController } from '../../src/operator/controller.ts'
import { ownTypes, podKeys } from '../../src/operator/index.ts'
import { createDecisions } from '../../src/operator/webhook/decisions.ts'
import { openMetrics } from '../../src/report/metrics.ts'
import { AUTH_TYPES } from '../../src/resources/index.ts'
import { silentLog } from '../kube/manual-timers.ts'
import { createFakeCluster } from './fake-cluster.ts'
import { BLOCKS, EXAMPLES, OF_TYPES, proxyOf, secretKeysIn, typeOf } from './page-examples.ts'

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})
const clock = { now: () => Date.now() }
const types = ownTypes('extauth.dev')

/** An operator that sees Secrets; `restrictPodTemplate` where no example asks for more. */
async function operate(cluster: ReturnType<typeof createFakeCluster>, restrictPodTemplate: boolean) {
  const settings = {
    apiGroup: 'extauth.dev',
    image: 'mcp-extauth:test',
    restrictPodTemplate,
    secretsByLabel: false,
  }
  const { client } = cluster
  const controller = createController({
    client,
    types,
    settings,
    namespace: undefined,
    watchSecrets: true,
    ownsKinds: true,
    writesStatus: true,
    isLeader: () => true,
    instance: 'test',
    clock,
    log: silentLog,
    metrics: openMetrics(),
  })
  closers.push(() => controller.close())
  await controller.observed.synced
  controller.start()
  await controller.idle()
  const keys = podKeys('extauth.dev')
  return { controller, decisions: createDecisions({ ...settings, client, types, keys, controller, clock }) }
}

test('the page has an example of every type, and no block that is none', () => {
  expect(BLOCKS).toBe(OF_TYPES.length)
  expect(EXAMPLES.length).toBeGreaterThan(OF_TYPES.length + 2)
  const shown = OF_TYPES.flatMap(({ objects }) => objects.map(typeOf)).filter((type) => type !== undefined)
  expect(new Set(shown)).toEqual(new Set(AUTH_TYPES))
})

test.each(EXAMPLES)('$title: is taken as it is, and ready when its Secrets and pods are there', async ({ objects }) => {
  const cluster = createFakeCluster()
  const hasRole = objects.some(({ spec }) => Object.hasOwn(spec ?? {}, 'awsRoleArn'))
  const { controller, decisions } = await operate(cluster, !hasRole)
  const { name, namespace, replicas } = proxyOf(objects)
  const ready = () => {
    const { status } = controller.observed.workload('MCPRemoteProxy', namespace, name) ?? {}
    const { conditions } = status as { conditions: { type: string; status: string; reason: string; message: string }[] }
    return conditions.find(({ type }) => type === 'Ready')
  }
  for (const object of objects) {
    const request = {
      uid: 'u',
      kind: { group: 'extauth.dev', version: 'v1alpha1', kind: object.kind },
      namespace,
      operation: 'CREATE',
      object,
      isDryRun: false,
    }
    const judged = () => decisions.validate(request, new AbortController().signal)
    // No warning either, once the operator has seen what came before.
    await vi.waitFor(async () => expect(await judged()).toEqual({ allowed: true, warnings: [] }))
    cluster.put(object)
  }
  for (const { name: secret } of secretKeysIn(objects))
    cluster.put({ apiVersion: 'v1', kind: 'Secret', metadata: { name: secret, namespace } })
  await vi.waitFor(() => expect(cluster.writes).toContain(`apply Deployment ${name}`))
  await vi.waitFor(() => expect(ready()).toMatchObject({ reason: 'DeploymentPending' }))
  // As its controller says when all pods run.
  const status = {
    observedGeneration: 1,
    updatedReplicas: replicas,
    readyReplicas: replicas,
    availableReplicas: replicas,
  }
  cluster.put({ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, namespace }, status })
  await vi.waitFor(() => expect(ready()).toMatchObject({ status: 'True', reason: 'ProxyReady' }))
})
