import { beforeAll, expect, test } from 'vitest'
import type { KubeObject, ResourceType } from '../../src/kube/index.ts'
import { CLUSTER_TYPES } from '../../src/operator/index.ts'
import { isWrite, requestsOf } from './support/audit-log.ts'
import { eventually } from './support/control-plane.ts'
import { type OperatorPod, SYSTEM, useInstallation } from './support/installation.ts'
import { anonymousCallers, BEARER, namespaceObject } from './support/operator-rig.ts'
import { CRDS, OTHER_GROUP, otherDefinition, otherObject, otherPod, others } from './support/other-operator.ts'

// Our operator in a cluster where another one owns the kinds, as `config/deploy/operator-beside` runs it.
const USER = `system:serviceaccount:${SYSTEM}:extauth-operator`
const cluster = useInstallation()
const SPACE = 'theirs'
const condition = (type: string): object => ({
  type,
  status: 'True',
  reason: 'Fine',
  message: 'of the other operator',
  lastTransitionTime: '2026-11-22T10:00:00Z',
})

beforeAll(async () => {
  const { client } = cluster
  await client.apply(CLUSTER_TYPES.Namespace, namespaceObject(SPACE))
  await client.apply(CLUSTER_TYPES.Namespace, namespaceObject(SYSTEM))
  // Its version has no MCPServerEntry.
  const { MCPServerEntry: _later, ...defined } = others
  for (const type of Object.values(defined))
    await client.apply(CRDS, otherDefinition(type, type !== others.MCPServer && type !== others.MCPExternalAuthConfig))
  const make = (type: ResourceType, name: string, spec: object): Promise<KubeObject> =>
    eventually(() => client.create(type, otherObject(type.kind, name, SPACE, spec)))
  await make(others.MCPExternalAuthConfig, 'known', BEARER)
  await make(others.MCPExternalAuthConfig, 'unknown', { type: 'xaa', xaa: { idp: 'somebody' } })
  await make(others.MCPServer, 'server', { image: 'x', externalAuthConfigRef: { name: 'known' } })
  await make(others.MCPRemoteProxy, 'proxy', {
    remoteUrl: 'https://a.example',
    externalAuthConfigRef: { name: 'known' },
  })
  await client.apply(CLUSTER_TYPES.ConfigMap, anonymousCallers(SPACE))
  // The other operator's status exists before the first reconciliation.
  const status = { phase: 'Ready', observedGeneration: 1, conditions: [condition('Ready'), condition('Valid')] }
  for (const name of ['known', 'unknown'])
    await client.merge(others.MCPExternalAuthConfig, SPACE, name, { status }, { subresource: 'status' })
}, 240_000)

/** All of that group, without what the server counts. */
async function stored(): Promise<unknown[]> {
  const types = [others.MCPExternalAuthConfig, others.MCPServer, others.MCPRemoteProxy, others.VirtualMCPServer]
  const lists = await Promise.all(types.map((type) => cluster.client.list(type, {})))
  return [...lists.flatMap(({ items }) => items), ...(await cluster.client.list(CRDS, {})).items]
}
const config = (name: string): Promise<KubeObject> => cluster.client.get(others.MCPExternalAuthConfig, SPACE, name)

/** Its write requests since then, without duplicates. */
const writes = (from: number): string[] => [
  ...new Set(
    requestsOf(cluster.plane, USER)
      .slice(from)
      .filter(isWrite)
      .map(
        ({ verb, objectRef: of }) =>
          `${verb} ${of?.apiGroup ?? ''}/${of?.resource}/${of?.subresource ?? ''} ${of?.name}`,
      ),
  ),
]
const FOR_ITSELF = [/\/leases\//, /^(create|update) \/secrets\//, /^update .*mutatingwebhookconfigurations\/ extauth$/]
const beyondItself = (from: number): string[] =>
  writes(from).filter((write) => !FOR_ITSELF.some((own) => own.test(write)))
const refused = (from: number): unknown[] =>
  requestsOf(cluster.plane, USER)
    .slice(from)
    .filter(({ responseStatus }) => responseStatus?.code === 403)

/** Sees that a pod that asks in that group's words gets the sidecar, and its ConfigMap. */
async function inject(name: string): Promise<void> {
  const pod = await eventually(() => cluster.client.create(CLUSTER_TYPES.Pod, otherPod(name, SPACE, 'known')))
  expect(pod.spec).toMatchObject({ initContainers: [{ name: 'extauth', restartPolicy: 'Always' }] })
  expect(pod.metadata.annotations).toHaveProperty([`${OTHER_GROUP}/injected`])
  await eventually(() => cluster.client.get(CLUSTER_TYPES.ConfigMap, SPACE, 'extauth-inject-known'))
}

test('without --write-status it injects, and writes nothing of the other group', async () => {
  cluster.kubectl('apply', '-k', 'config/deploy/operator-beside')
  const before = await stored()
  const operator: OperatorPod = await cluster.runOperatorPod()
  await inject('first')
  // Concurrent edits and deletions: the operator neither validates, blocks nor answers them.
  await cluster.client.merge(others.MCPServer, SPACE, 'server', { spec: { replicas: 2 } })
  await cluster.client.merge(others.MCPServer, SPACE, 'server', { spec: { replicas: null } })
  await operator.end('SIGTERM')
  const withoutVersions = (objects: unknown[]): unknown =>
    JSON.parse(
      JSON.stringify(objects, (key, value: unknown) =>
        /^(resourceVersion|generation|managedFields)$/.test(key) ? undefined : value,
      ),
    )
  expect(withoutVersions(await stored())).toEqual(withoutVersions(before))
  expect(beyondItself(0)).toEqual(['patch /configmaps/ extauth-inject-known'])
  expect(refused(0)).toEqual([])
}, 120_000)

test('with --write-status it adds its own conditions, and those of the other operator stay as they are', async () => {
  const from = requestsOf(cluster.plane, USER).length
  cluster.kubectl('apply', '-k', 'config/deploy/operator-beside-write-status')
  await eventually(async () => {
    const pods = await cluster.client.list(CLUSTER_TYPES.Pod, { namespace: SYSTEM })
    expect(pods.items.filter(({ spec }) => JSON.stringify(spec).includes('--write-status')).length).toBeGreaterThan(0)
  })
  const operator = await cluster.runOperatorPod('--write-status')
  const typesOf = async (name: string): Promise<Record<string, string>> => {
    const { conditions } = (await config(name)).status as {
      conditions: { type: string; status: string; reason: string }[]
    }
    return Object.fromEntries(conditions.map(({ type, status, reason }) => [type, `${status} ${reason}`]))
  }
  const theirs = { Ready: 'True Fine', Valid: 'True Fine' }
  const ours = (isValid: boolean): object => ({
    'extauth.dev/Valid': isValid ? 'True ValidationSucceeded' : 'False ValidationFailed',
    'extauth.dev/Ready': isValid ? 'True ConfigReady' : 'False ValidationFailed',
    'extauth.dev/SecretsResolved': isValid ? 'Unknown SecretsNotWatched' : 'Unknown ValidationFailed',
    'extauth.dev/DeletionBlocked': 'False NotReferenced',
    // The pod of the test before runs with the one that is known.
    'extauth.dev/InjectedPodsCurrent': isValid ? 'True PodsCurrent' : 'Unknown NoInjectedPods',
  })
  await eventually(async () => expect(await typesOf('known')).toEqual({ ...theirs, ...ours(true) }))
  await eventually(async () => expect(await typesOf('unknown')).toEqual({ ...theirs, ...ours(false) }))
  // The other operator writes all that it read, as `Status().Update` does; what it says now stays, and so does ours.
  const object = await config('known')
  const { conditions } = object.status as { conditions: object[] }
  const status = { ...(object.status as object), conditions: [...conditions, condition('Synced')] }
  await cluster.client.update(others.MCPExternalAuthConfig, { ...object, status }, { subresource: 'status' })
  const edited = await cluster.client.merge(others.MCPExternalAuthConfig, SPACE, 'known', {
    spec: { type: 'unauthenticated', bearerToken: null },
  })
  await eventually(async () => {
    const now = (await config('known')).status as { conditions: { type: string; observedGeneration?: number }[] }
    const valid = now.conditions.find(({ type }) => type === 'extauth.dev/Valid')
    expect(valid?.observedGeneration).toBe(edited.metadata.generation)
  })
  expect(await typesOf('known')).toEqual({ ...theirs, Synced: 'True Fine', ...ours(true) })
  expect((await config('known')).status).toMatchObject({ phase: 'Ready', observedGeneration: 1 })
  expect((await config('known')).metadata.finalizers).toEqual([`${OTHER_GROUP}/theirs`])

  // A deletion waits for the other operator alone.
  await cluster.client.remove(others.MCPExternalAuthConfig, SPACE, 'unknown')
  await cluster.client.merge(others.MCPExternalAuthConfig, SPACE, 'unknown', { metadata: { finalizers: null } })
  await expect(config('unknown')).rejects.toMatchObject({ status: 404 })
  await operator.end('SIGTERM')
  const toStatus = `patch ${OTHER_GROUP}/mcpexternalauthconfigs/status`
  const written = beyondItself(from).filter((write) => !write.startsWith('create events.k8s.io/'))
  expect(written.sort()).toEqual([
    'patch /configmaps/ extauth-inject-known',
    `${toStatus} known`,
    `${toStatus} unknown`,
  ])
  expect(refused(from)).toEqual([])
}, 120_000)
