import { afterEach, expect, test, vi } from 'vitest'
import { AUTH_TYPES } from '../../../src/resources/index.ts'
import { createFakeCluster } from '../../support/operator/fake-cluster.ts'
import { conditionOf } from '../../support/operator/objects.ts'
import { BLOCKS, EXAMPLES, OF_TYPES, proxyOf, secretKeysIn, typeOf } from '../../support/operator/page-examples.ts'
import { closeAll, type Closers, operate } from '../../support/operator/start-controller.ts'

const closers: Closers = []
afterEach(() => closeAll(closers))

test('the page has an example of every type, and no block that is none', () => {
  expect(BLOCKS).toBe(OF_TYPES.length)
  expect(EXAMPLES.length).toBeGreaterThan(OF_TYPES.length + 2)
  const shown = OF_TYPES.flatMap(({ objects }) => objects.map(typeOf)).filter((type) => type !== undefined)
  expect(new Set(shown)).toEqual(new Set(AUTH_TYPES))
})

test.each(EXAMPLES)('$title: is taken as it is, and ready when its Secrets and pods are there', async ({ objects }) => {
  const cluster = createFakeCluster()
  const hasRole = objects.some(({ spec }) => Object.hasOwn(spec ?? {}, 'awsRoleArn'))
  const { controller, decisions } = await operate(cluster, closers, {
    restrictPodTemplate: !hasRole,
    secretsByLabel: false,
  })
  const { name, namespace, replicas } = proxyOf(objects)
  const ready = () => conditionOf(controller.observed.workload('MCPRemoteProxy', namespace, name), 'Ready')
  for (const object of objects) {
    const request = {
      uid: 'u',
      kind: { group: 'extauth.dev', version: 'v1alpha1', kind: object.kind },
      namespace,
      operation: 'CREATE',
      object,
      isDryRun: false,
    }
    const verdict = () => decisions.validate(request, new AbortController().signal)
    // No warning either, once the operator has seen what came before.
    await vi.waitFor(async () => expect(await verdict()).toEqual({ allowed: true, warnings: [] }))
    cluster.put(object)
  }
  for (const { name: secret } of secretKeysIn(objects))
    cluster.put({ apiVersion: 'v1', kind: 'Secret', metadata: { name: secret, namespace } })
  await vi.waitFor(() => expect(cluster.writes).toContain(`apply Deployment ${name}-extauth`))
  await vi.waitFor(() => expect(ready()).toMatchObject({ reason: 'DeploymentPending' }))
  // As its controller says when all pods run.
  const status = {
    observedGeneration: 1,
    updatedReplicas: replicas,
    readyReplicas: replicas,
    availableReplicas: replicas,
  }
  cluster.put({ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: `${name}-extauth`, namespace }, status })
  await vi.waitFor(() => expect(ready()).toMatchObject({ status: 'True', reason: 'ProxyReady' }))
})
