import { expect, test } from 'vitest'
import type { KubeObject } from '../../../src/kube/index.ts'
import { parseDocuments, parseObjects } from '../../../src/load/index.ts'
import { createKnownConfigs } from '../../../src/operator/config/known-config.ts'
import { createKnownSharedConfigs } from '../../../src/operator/config/known-shared-configs.ts'
import { ownTypes } from '../../../src/operator/index.ts'
import type { Observed } from '../../../src/operator/observed.ts'
import { reconcileRemoteProxy } from '../../../src/operator/remote-proxy/reconcile-remote-proxy.ts'
import { remoteProxySnapshot } from '../../../src/operator/remote-proxy/snapshot.ts'
import { SPECS } from '../../support/load/documents/build.ts'

const GROUP = 'extauth.dev'
const types = ownTypes(GROUP)
const named = (kind: string, name: string, generation: number, spec: object): KubeObject => ({
  apiVersion: `${GROUP}/v1alpha1`,
  kind,
  metadata: { name, namespace: 'n', uid: `${kind}-uid`, generation },
  spec,
})
const auth = named('MCPExternalAuthConfig', 'c', 1, { type: 'unauthenticated' })
const login = named('MCPExternalAuthConfig', 'login', 1, SPECS.embeddedAuthServer)
const proxy = (generation: number, more: object = {}): KubeObject =>
  named('MCPRemoteProxy', 'p', generation, {
    remoteUrl: 'https://api.example.com/mcp',
    externalAuthConfigRef: { name: 'c' },
    resourceUrl: 'https://mcp.example.com',
    oidcConfig: { type: 'inline', inline: { issuer: 'https://idp.example.com', audience: 'mcp' } },
    replicas: 1,
    ...more,
  })

/** A look at a proxy while the cluster holds these objects of it. */
function look(
  object: KubeObject,
  owned: ReadonlyMap<string, KubeObject>,
  earlier: ReadonlyMap<string, KubeObject> = new Map(),
) {
  const observed: Pick<Observed, 'config' | 'namespaceImage' | 'owned' | 'service' | 'shared'> = {
    config: (_namespace, name) => (name === 'login' ? login : auth),
    owned: (type, _namespace, name) =>
      [owned.get(type.kind), earlier.get(type.kind)].find((one) => one?.metadata.name === name),
    service: () => undefined,
    shared: () => undefined,
    namespaceImage: () => undefined,
  }
  const settings = { apiGroup: GROUP, image: 'mcp-extauth:test', restrictPodTemplate: false, secretsByLabel: false }
  const snapshot = remoteProxySnapshot(object, {
    observed,
    known: createKnownConfigs(GROUP),
    knownShared: createKnownSharedConfigs(GROUP),
    secretsOf: () => 'unknown',
    types,
    settings,
    now: new Date('2026-11-22T10:00:00Z'),
  })
  return reconcileRemoteProxy(snapshot)
}

/** Everything that the plan applies, as a cluster has it when all of it runs. */
function running(plan: ReturnType<typeof look>): Map<string, KubeObject> {
  const applied = plan.actions.flatMap((action) => (action.do === 'apply' ? [action.object] : []))
  return new Map(
    applied.map((object) => {
      const status = { observedGeneration: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1 }
      const stored = { ...object, metadata: { ...object.metadata, generation: 1 } }
      return [object.kind, object.kind === 'Deployment' ? { ...stored, status } : stored]
    }),
  )
}

function statusOf(plan: ReturnType<typeof look>) {
  const written = plan.actions.find((action) => action.do === 'apply_status')?.object.status
  const { observedGeneration, conditions } = written as {
    observedGeneration: number
    conditions: { type: string; status: string; reason: string }[]
  }
  const ready = conditions.find(({ type }) => type === 'Ready')
  return { observedGeneration, ready: [ready?.status, ready?.reason] }
}

test('a proxy whose Deployment runs as it is wanted is ready', () => {
  const cluster = running(look(proxy(1), new Map()))
  expect(statusOf(look(proxy(1), cluster))).toEqual({ observedGeneration: 1, ready: ['True', 'ProxyReady'] })
})

test('an ordinary creation writes no Warning event; a pod that a ready proxy loses does', () => {
  const created = look(proxy(1), new Map())
  expect(created.events.map(({ type, reason }) => [type, reason])).toEqual([
    ['Normal', 'DeploymentPending'],
    ['Normal', 'ExternalAuthConfigValid'],
  ])
  const cluster = running(created)
  const statusNow = look(proxy(1), cluster).actions.find((action) => action.do === 'apply_status')?.object.status
  const deployment = cluster.get('Deployment')
  if (deployment === undefined) throw new Error('no Deployment')
  const status = { ...(deployment.status as object), availableReplicas: 0 }
  const lost = look(
    { ...proxy(1), status: statusNow },
    new Map([...cluster, ['Deployment', { ...deployment, status }]]),
  )
  expect(lost.events.map(({ type, reason }) => [type, reason])).toEqual([['Warning', 'ReplicasUnavailable']])
})

test.each([
  [1, {}, ['False', 'SessionStorageNotRequired']],
  [2, {}, ['True', 'SessionStorageMissing']],
] as const)('%i pods with logins in memory: SessionStorageWarning', (replicas, more, expected) => {
  const authServerRef = { kind: 'MCPExternalAuthConfig', name: 'login' }
  const plan = look(proxy(1, { externalAuthConfigRef: undefined, authServerRef, replicas, ...more }), new Map())
  const written = plan.actions.find((action) => action.do === 'apply_status')?.object.status
  const { conditions } = written as { conditions: { type: string; status: string; reason: string }[] }
  const found = conditions.find(({ type }) => type === 'SessionStorageWarning')
  expect([found?.status, found?.reason]).toEqual(expected)
})

test('an edit that changes the pods is never called ready by what ran before it', () => {
  const cluster = running(look(proxy(1), new Map()))
  const plan = look(proxy(2, { image: 'mcp-extauth:next' }), cluster)
  expect(plan.actions.some((action) => action.do === 'apply' && action.type.kind === 'Deployment')).toBe(true)
  // Tools that wait for the generation and for Ready (kubectl, Argo CD, Flux) would continue before the rollout.
  expect(statusOf(plan)).toEqual({ observedGeneration: 2, ready: ['False', 'DeploymentPending'] })
})

test('an edit that reaches the pods by their mount leaves it ready', () => {
  const cluster = running(look(proxy(1), new Map()))
  const plan = look(proxy(2, { remoteUrl: 'https://api.example.com/other' }), cluster)
  expect(statusOf(plan)).toEqual({ observedGeneration: 2, ready: ['True', 'ProxyReady'] })
})

/** Objects of a proxy with several replicas and a service account, absent for one with neither. */
const UNWANTED = ['ServiceAccount', 'PodDisruptionBudget']
const WITHOUT = { serviceAccountName: 'theirs', replicas: 1 }

test('an unneeded account and budget are deleted, those of other owners stay', () => {
  const cluster = running(look(proxy(1, { replicas: 2 }), new Map()))
  const removed = (objects: ReadonlyMap<string, KubeObject>) =>
    look(proxy(2, WITHOUT), objects).actions.flatMap((action) => (action.do === 'remove' ? [action.object.kind] : []))
  expect(removed(cluster)).toEqual(UNWANTED)
  // Same names and labels: a user may have created them for these pods, or another proxy owns them.
  const change = (ownedBy: (owners: KubeObject['metadata']['ownerReferences']) => object): Map<string, KubeObject> => {
    const changed = structuredClone(cluster)
    for (const { metadata } of changed.values()) Object.assign(metadata, ownedBy(metadata.ownerReferences))
    return changed
  }
  expect(removed(change(() => ({ ownerReferences: undefined })))).toEqual([])
  const others = change((owners = []) => ({ ownerReferences: [{ ...owners[0], uid: 'other' }] }))
  expect(removed(others)).toEqual([])
})

test('a Deployment that the server writes in a form of its own is ready when its pods are', () => {
  const template = {
    spec: { volumes: [{ name: 'tmp', ephemeral: { volumeClaimTemplate: { spec: { tier: '0.5Ti' } } } }] },
  }
  const object = proxy(1, { podTemplateSpec: template })
  const cluster = running(look(object, new Map()))
  const stored = JSON.stringify(cluster.get('Deployment')).replace('0.5Ti', '512Gi')
  cluster.set('Deployment', JSON.parse(stored) as KubeObject)
  expect(statusOf(look(object, cluster))).toEqual({ observedGeneration: 1, ready: ['True', 'ProxyReady'] })
})

test.each(['data', 'binaryData'])('a foreign key in the %s of its ConfigMap is removed, and nothing else', (field) => {
  const cluster = running(look(proxy(1), new Map()))
  const configMap = cluster.get('ConfigMap')
  if (configMap === undefined) throw new Error('no ConfigMap')
  cluster.set('ConfigMap', {
    ...configMap,
    [field]: { ...(configMap[field] as object | undefined), 'more.yaml': 'x' },
  })
  const actions = look(proxy(1), cluster).actions.filter(({ type }) => type.kind === 'ConfigMap')
  expect(actions).toMatchObject([{ do: 'remove_keys', keys: ['more.yaml'] }])
})

test('the logs of its pods do not mention texts in generated files', () => {
  const headerForward = { addPlaintextHeaders: { 'X-A': 'on', 'X-B': '3_600', y: 'no' } }
  const data = running(look(proxy(1, { headerForward }), new Map())).get('ConfigMap')?.data as Record<string, string>
  const texts = Object.entries(data).map(([path, text]) => ({ path, text }))
  const { warnings } = parseDocuments(texts)
  expect(warnings.filter(({ message }) => message.includes('YAML 1.1'))).toEqual([])
})

test('what an earlier release made under the name of the proxy goes when it is replaced, its Service stays', () => {
  const cluster = running(look(proxy(1, { replicas: 2 }), new Map()))
  const earlier = new Map(
    [...cluster].map(([kind, object]) => [kind, { ...object, metadata: { ...object.metadata, name: 'p' } }]),
  )
  const removed = (now: ReadonlyMap<string, KubeObject>, before = earlier) =>
    look(proxy(1, { replicas: 2 }), now, before).actions.flatMap((action) =>
      action.do === 'remove' ? [`${action.object.kind} ${action.object.metadata.name}`] : [],
    )
  expect(removed(new Map())).toEqual([])
  // Two of one replica are available: the earlier pods still serve.
  expect(removed(cluster)).toEqual(['NetworkPolicy p', 'PodDisruptionBudget p'])
  const status = { observedGeneration: 1, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2 }
  const deployment = cluster.get('Deployment')
  if (deployment === undefined) throw new Error('no Deployment')
  const ready = new Map([...cluster, ['Deployment', { ...deployment, status }] as const])
  const all = ['ServiceAccount p', 'ConfigMap p', 'NetworkPolicy p', 'Deployment p', 'PodDisruptionBudget p']
  expect(removed(ready)).toEqual(all)
  // An object of this name with another owner, a proxy called `p` of another controller, is not changed.
  const foreign = new Map(
    [...earlier].map(([kind, object]) => [
      kind,
      {
        ...object,
        metadata: { ...object.metadata, ownerReferences: [{ apiVersion: 'v1', kind: 'X', name: 'p', uid: 'x' }] },
      },
    ]),
  )
  expect(removed(ready, foreign)).toEqual([])
})

/** Counts the reads of a field that only the schema reads; `perParse` is the number for one parse. */
function countReads(object: KubeObject): {
  readonly counted: KubeObject
  readonly perParse: number
  readonly reads: () => number
} {
  let reads = 0
  const spec = Object.defineProperty({ ...(object.spec as object) }, 'trustProxyHeaders', {
    enumerable: true,
    get: () => void (reads += 1),
  })
  const counted = { ...object, spec }
  parseObjects([counted], { apiGroup: GROUP })
  const perParse = reads
  reads = 0
  return { counted, perParse, reads: () => reads }
}

test.each([
  ['a valid one', {}],
  ['one without a resourceUrl', { resourceUrl: undefined }],
  ['one that cannot start', { externalAuthConfigRef: undefined, oidcConfig: undefined }],
  ['an invalid one', { remoteUrl: 'nonsense' }],
])('an MCPRemoteProxy is parsed once per reconciliation: %s', (_name, more) => {
  const { counted, perParse, reads } = countReads(proxy(1, more))
  look(counted, new Map())
  expect(reads()).toBeGreaterThan(0)
  expect(reads()).toBeLessThanOrEqual(perParse)
})

test('the default of resourceUrl adds no problem to an invalid externalURL', () => {
  const { actions } = look(proxy(1, { resourceUrl: undefined, externalURL: 'nonsense' }), new Map())
  const messages = JSON.stringify(actions)
  expect(messages).toContain('spec.externalURL')
  expect(messages).not.toContain('spec.resourceUrl')
})
