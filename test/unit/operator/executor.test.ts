import { expect, test } from 'vitest'
import { type KubeClient, KubeError, type KubeObject } from '../../../src/kube/index.ts'
import type { Action, EventNote } from '../../../src/operator/actions.ts'
import { createExecutor } from '../../../src/operator/executor.ts'
import { CLUSTER_TYPES } from '../../../src/operator/index.ts'
import { APPLIED_HASH } from '../../../src/operator/wanted.ts'
import { createManualClock, createRecordingLog } from '../../support/ports.ts'

const type = CLUSTER_TYPES.ConfigMap
const object: KubeObject = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'a', namespace: 'n', uid: 'u', resourceVersion: '9' },
}

/** An executor whose writes are recorded; `fail` says with which status a write is refused. */
function rig(
  options: { fail?: (verb: string) => number | undefined; mayWrite?: () => boolean; there?: KubeObject[] } = {},
) {
  const writes: unknown[][] = []
  const known: string[] = []
  const write =
    (verb: string) =>
    async (...of: unknown[]): Promise<KubeObject> => {
      writes.push([verb, ...of])
      const status = options.fail?.(verb)
      if (status !== undefined) throw new KubeError(status, '')
      return Promise.resolve(object)
    }
  const client = {
    apply: write('apply'),
    create: write('create'),
    merge: write('merge'),
    remove: write('remove'),
    fieldManager: 'extauth-operator',
    list: () => Promise.resolve({ items: options.there ?? [], resourceVersion: '1' }),
  } as unknown as KubeClient
  const executor = createExecutor({
    client,
    clock: createManualClock(),
    instance: 'i',
    mayWrite: options.mayWrite ?? (() => true),
    onWritten: (_type, { kind }) => known.push(kind),
    calm: () => Promise.resolve(),
    log: createRecordingLog(),
  })
  return { executor, writes, known, verbs: () => writes.map(([verb]) => verb) }
}

const event = (reason = 'Ready'): EventNote => ({ regarding: object, type: 'Normal', reason, note: '' })
const ALL: readonly Action[] = [
  { do: 'apply', type, object },
  { do: 'apply_status', type, object },
  { do: 'remove_keys', type, object, keys: ['x'] },
  { do: 'set_finalizers', type, object, finalizers: ['f'] },
  { do: 'remove', type, object },
]

test('a plan is carried out in its order, its events after it', async () => {
  const { executor, writes, known, verbs } = rig()
  await executor.run({ actions: ALL, events: [event()] })
  await executor.idle()
  // All that is still there afterwards, and no event.
  expect(known).toEqual(['ConfigMap', 'ConfigMap', 'ConfigMap', 'ConfigMap'])
  expect(verbs()).toEqual(['apply', 'apply', 'merge', 'merge', 'remove', 'create'])
  expect(writes[1]?.[3]).toEqual({ subresource: 'status' })
  expect(writes[2]?.[4]).toEqual({ data: { x: null }, binaryData: { x: null } })
  expect(writes[3]?.[4]).toEqual({ metadata: { finalizers: ['f'], resourceVersion: '9' } })
  // That very object: one of the same name may have come since.
  expect(writes[4]).toEqual(['remove', type, 'n', 'a', 'u'])
})

test('who does not lead any more writes nothing more', async () => {
  let left = 2
  const { executor, verbs } = rig({ mayWrite: () => left-- > 0 })
  await expect(executor.run({ actions: ALL, events: [event()] })).rejects.toMatchObject({ reason: 'not the leader' })
  await executor.idle()
  expect(verbs()).toEqual(['apply', 'apply'])
})

test('what is gone needs no status, no keys and no finalizer; what should be there does', async () => {
  const { executor } = rig({ fail: () => 404 })
  await executor.run({ actions: ALL.slice(1, 4), events: [] })
  await expect(executor.run({ actions: ALL.slice(0, 1), events: [] })).rejects.toMatchObject({ status: 404 })
})

const ownedBy = (uid: string): KubeObject => ({
  ...object,
  metadata: {
    ...object.metadata,
    ownerReferences: [{ apiVersion: 'v1', kind: 'MCPRemoteProxy', name: 'p', uid, controller: true }],
  },
})
const bare: KubeObject = { ...object, metadata: { name: 'a', namespace: 'n' } }
const annotated: KubeObject = { ...bare, metadata: { ...bare.metadata, annotations: { [APPLIED_HASH]: '1' } } }
const copied: KubeObject = { ...annotated, metadata: { ...ownedBy('other').metadata, ...annotated.metadata } }

test.each([
  ['of another owner', bare, 'refused'],
  ['of another proxy', ownedBy('other'), 'refused'],
  ['of another proxy, with the operator’s annotation', copied, 'refused'],
  ['of the same proxy', ownedBy('mine'), 'applied'],
  ['of the operator that lost its owner reference', annotated, 'applied'],
])('what to do with an object %s', async (_what, there, outcome) => {
  for (const known of [true, false]) {
    const { executor, verbs } = rig({ there: known ? [] : [there] })
    const run = executor.run({
      actions: [{ do: 'apply', type, object: ownedBy('mine'), before: known ? there : undefined }],
      events: [],
    })
    if (outcome === 'applied') await run
    else await expect(run).rejects.toMatchObject({ what: 'ConfigMap "a"', status: 409 })
    expect(verbs()).toEqual(outcome === 'applied' ? ['apply'] : [])
  }
})

test.each([409, 500])('a status that is refused with %i is tried again with its plan', async (status) => {
  const { executor, verbs } = rig({ fail: () => status })
  await expect(executor.run({ actions: ALL.slice(1), events: [] })).rejects.toMatchObject({ status })
  expect(verbs()).toEqual(['apply'])
})

test('an event that cannot be written fails no reconciliation', async () => {
  const { executor, verbs } = rig({ fail: (verb) => (verb === 'create' ? 500 : undefined) })
  await executor.run({ actions: [], events: [event('One'), event('Two')] })
  await executor.idle()
  expect(verbs()).toEqual(['create', 'create'])
})

test('events that wait have a bound', async () => {
  const { executor, writes } = rig()
  await executor.run({ actions: [], events: Array.from({ length: 10_005 }, () => event()) })
  await executor.idle()
  expect(writes).toHaveLength(10_000)
})

test('the number of pods that the operator owned stays when an autoscaler is to decide', async () => {
  const deployment = (owner: string): KubeObject => {
    const managedFields = [{ manager: owner, operation: 'Apply', fieldsV1: { 'f:spec': { 'f:replicas': {} } } }]
    const metadata = { ...object.metadata, managedFields, annotations: { [APPLIED_HASH]: 'x' } }
    return { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec: { replicas: 3 } }
  }
  const wanted: KubeObject = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: object.metadata, spec: {} }
  const apply: Action = { do: 'apply', type: CLUSTER_TYPES.Deployment, object: wanted, keepsReplicas: true }
  const owned = rig({ there: [deployment('extauth-operator')] })
  await owned.executor.run({ actions: [apply], events: [] })
  expect(owned.writes.map(([, , written, options]) => [(written as KubeObject).spec, options])).toEqual([
    [{ replicas: 3 }, { fieldManager: 'extauth-operator-replicas' }],
    [{}, undefined],
  ])
  const scaled = rig({ there: [deployment('kube-controller-manager')] })
  await scaled.executor.run({ actions: [apply], events: [] })
  expect(scaled.verbs()).toEqual(['apply'])
})
