import { execFileSync } from 'node:child_process'
import { beforeAll, expect, test } from 'vitest'
import type { KubeClient, KubeObject, ResourceType } from '../../src/kube/index.ts'
import { CLUSTER_TYPES } from '../../src/operator/index.ts'
import { instanceName, ownedName } from '../../src/operator/names.ts'
import { eventually } from './support/control-plane.ts'
import { BEARER, config, namespaceObject, types, workload } from './support/operator-rig.ts'
import { markReady, podsOf } from './support/pods.ts'
import { useCluster } from './support/use-cluster.ts'

const SPACE = 'proxies'
const CALLERS = {
  oidcConfig: {
    type: 'inline',
    inline: { issuer: 'https://idp.example.com', audience: 'mcp', jwksUrl: 'https://idp.example.com/jwks' },
  },
  resourceUrl: 'https://mcp.example.com',
}
const spec = (more: object = {}): object => ({
  remoteUrl: 'https://api.example.com/mcp',
  externalAuthConfigRef: { name: 'bearer' },
  ...CALLERS,
  ...more,
})

const cluster = useCluster({}, async ({ client: admin }) => {
  const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' }
  await admin.apply(CLUSTER_TYPES.Namespace, namespaceObject(SPACE, labels))
  await admin.apply(types.MCPExternalAuthConfig, config('bearer', SPACE))
})
let client: KubeClient
beforeAll(() => {
  client = cluster.client
})

const apply = (name: string, more: object = {}): Promise<KubeObject> =>
  client.apply(types.MCPRemoteProxy, workload('MCPRemoteProxy', name, spec(more), SPACE))
/** The proxy of that name, or what it owns. */
const get = (type: ResourceType, name: string): Promise<KubeObject> =>
  client.get(type, SPACE, type.kind in types ? name : ownedName(name))
const deployment = (name: string): Promise<KubeObject> => get(CLUSTER_TYPES.Deployment, name)
const ready = async (name: string): Promise<{ status: string; reason: string; message: string } | undefined> => {
  const { status } = await get(types.MCPRemoteProxy, name)
  return (
    status as { conditions?: { type: string; status: string; reason: string; message: string }[] } | undefined
  )?.conditions?.find(({ type }) => type === 'Ready')
}
/** Every pod of the proxy runs and is ready. */
const runAll = async (name: string, replicas: number): Promise<void> =>
  markReady(client, await podsOf(client, SPACE, name, replicas))

/** The operator writes meanwhile, so a version may be too old. */
const replaceSpec = (name: string, wanted: object): Promise<KubeObject> =>
  eventually(async () =>
    client.update(types.MCPExternalAuthConfig, { ...(await get(types.MCPExternalAuthConfig, name)), spec: wanted }),
  )

test('everything that a proxy owns is there, owned by it, and its pods pass the restricted standard', async () => {
  await apply('whole', { replicas: 2 })
  for (const type of [
    CLUSTER_TYPES.ServiceAccount,
    CLUSTER_TYPES.ConfigMap,
    CLUSTER_TYPES.NetworkPolicy,
    CLUSTER_TYPES.Deployment,
    CLUSTER_TYPES.Service,
    CLUSTER_TYPES.PodDisruptionBudget,
  ]) {
    const object = await eventually(() => get(type, 'whole'))
    expect(object.metadata.ownerReferences?.[0]).toMatchObject({
      kind: 'MCPRemoteProxy',
      name: 'whole',
      controller: true,
    })
  }
  await podsOf(client, SPACE, 'whole', 2)
})

test('Ready follows the Deployment and names the first thing that is missing', async () => {
  await apply('waits', { replicas: 1 })
  await eventually(async () => expect(await ready('waits')).toMatchObject({ status: 'False' }))
  await eventually(() => deployment('waits'))
  await runAll('waits', 1)
  await eventually(async () => expect(await ready('waits')).toMatchObject({ status: 'True', reason: 'ProxyReady' }))
  expect((await get(types.MCPRemoteProxy, 'waits')).status).toMatchObject({
    replicas: 1,
    readyReplicas: 1,
    url: `http://waits-extauth.${SPACE}.svc.cluster.local:8080`,
    serviceName: 'waits-extauth',
  })
})

test('a changed config reaches pods through the ConfigMap without a rollout; a changed pod is one rollout', async () => {
  await client.apply(types.MCPExternalAuthConfig, config('changing', SPACE))
  await apply('changes', { externalAuthConfigRef: { name: 'changing' } })
  const before = await eventually(() => deployment('changes'))
  const map = await get(CLUSTER_TYPES.ConfigMap, 'changes')
  await apply('changes', { externalAuthConfigRef: { name: 'changing' }, remoteUrl: 'https://api.example.com/other' })
  await eventually(async () => expect((await get(CLUSTER_TYPES.ConfigMap, 'changes')).data).not.toEqual(map.data))
  const after = await deployment('changes')
  expect((after.spec as { template: unknown }).template).toEqual((before.spec as { template: unknown }).template)
  await apply('changes', { externalAuthConfigRef: { name: 'changing' }, resources: { requests: { cpu: '10m' } } })
  await eventually(async () => {
    const { spec: changed } = await deployment('changes')
    expect(JSON.stringify(changed)).toContain('"cpu":"10m"')
  })
})

test('an invalid config never replaces the one that runs, and the condition says so', async () => {
  await client.apply(types.MCPExternalAuthConfig, config('breaks', SPACE))
  await apply('guarded', { externalAuthConfigRef: { name: 'breaks' } })
  const map = await eventually(() => get(CLUSTER_TYPES.ConfigMap, 'guarded'))
  const broken = {
    type: 'cloudSts',
    cloudSts: {
      region: 'us-east-1',
      roleMappings: [{ roleArn: 'arn:aws:iam::123456789012:role/r', matcher: 'claims.' }],
    },
  }
  await replaceSpec('breaks', broken)
  await eventually(async () =>
    expect(await ready('guarded')).toMatchObject({ status: 'False', reason: 'ExternalAuthConfigInvalid' }),
  )
  expect((await get(CLUSTER_TYPES.ConfigMap, 'guarded')).data).toEqual(map.data)
  // Removed parts are restored.
  await client.remove(CLUSTER_TYPES.ConfigMap, SPACE, 'guarded-extauth')
  await eventually(async () => expect((await get(CLUSTER_TYPES.ConfigMap, 'guarded')).data).toEqual(map.data))
  await replaceSpec('breaks', BEARER)
  await eventually(async () => expect((await ready('guarded'))?.reason).not.toBe('ExternalAuthConfigInvalid'))
})

test('drift is put back, an autoscaler is left alone, and what others own stays', async () => {
  await apply('drifts')
  await eventually(() => get(CLUSTER_TYPES.Service, 'drifts'))
  await client.merge(CLUSTER_TYPES.Service, SPACE, 'drifts-extauth', {
    spec: { selector: { 'app.kubernetes.io/instance': 'another' } },
  })
  await eventually(async () => {
    expect((await get(CLUSTER_TYPES.Service, 'drifts')).spec).toMatchObject({
      selector: { 'app.kubernetes.io/instance': 'drifts' },
    })
  })
  const where = ['--kubeconfig', cluster.plane.kubeconfigPath, '-n', SPACE]
  execFileSync('kubectl', ['scale', 'deployment/drifts-extauth', '--replicas=3', ...where])
  execFileSync('kubectl', ['annotate', 'deployment/drifts-extauth', 'example.com/mine=yes', ...where])
  await new Promise((resolve) => setTimeout(resolve, 1_500))
  const found = await deployment('drifts')
  expect(found.spec).toMatchObject({ replicas: 3 })
  expect(found.metadata.annotations).toMatchObject({ 'example.com/mine': 'yes' })
})

test('a foreign document in the ConfigMap is removed, and server defaults do not keep a proxy from Ready', async () => {
  const podTemplateSpec = {
    spec: { hostNetwork: false, tolerations: [], volumes: [{ name: 'tmp', emptyDir: { sizeLimit: '1024Mi' } }] },
  }
  await apply('plain', { podTemplateSpec })
  await eventually(() => deployment('plain'))
  await client.merge(CLUSTER_TYPES.ConfigMap, SPACE, 'plain-extauth', { data: { 'more.yaml': 'x' } })
  await eventually(async () => {
    expect(Object.keys((await get(CLUSTER_TYPES.ConfigMap, 'plain')).data ?? {})).not.toContain('more.yaml')
    expect((await ready('plain'))?.reason).toBe('ReplicasUnavailable')
  })
})

test('a removed owner reference is restored', async () => {
  await apply('disowned')
  for (const type of [CLUSTER_TYPES.ServiceAccount, CLUSTER_TYPES.ConfigMap, CLUSTER_TYPES.Service]) {
    await eventually(() => get(type, 'disowned'))
    await client.merge(type, SPACE, 'disowned-extauth', { metadata: { ownerReferences: null } })
    await eventually(async () => expect((await get(type, 'disowned')).metadata.ownerReferences).toHaveLength(1), 5_000)
  }
})

test.each([
  ['a template that no Deployment takes', { podTemplateSpec: { spec: { nothing: 1 } } }, 'Deployment', 'nothing'],
  ['an amount that is none', { resources: { requests: { cpu: 'lots' } } }, 'Deployment', 'quantities'],
  ['a range of addresses that is none', { metricsFrom: [{ ipBlock: { cidr: 'x' } }] }, 'NetworkPolicy', 'CIDR'],
])('%s is said in Ready, once', async (_what, more, kind, words) => {
  const name = `refused-${words.toLowerCase()}`
  await apply(name, more)
  const found = await eventually(async () => {
    const condition = await ready(name)
    expect(condition).toMatchObject({ status: 'False', reason: 'ApplyRefused' })
    return condition
  })
  expect(found?.message).toContain(`${kind} "${name}-extauth" was refused: `)
  expect(found?.message).toContain(words)
  await apply(name)
  await eventually(async () => expect((await ready(name))?.reason).not.toBe('ApplyRefused'))
  await eventually(() => deployment(name))
})

test('objects of other owners are not adopted', async () => {
  const data = { mine: 'yes' }
  const metadata = { name: 'taken-extauth', namespace: SPACE }
  await client.create(CLUSTER_TYPES.ConfigMap, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data })
  await apply('taken')
  await eventually(async () => expect(await ready('taken')).toMatchObject({ reason: 'ApplyRefused' }))
  const found = await get(CLUSTER_TYPES.ConfigMap, 'taken')
  expect([found['data'], found.metadata.ownerReferences]).toEqual([data, undefined])
  await client.remove(CLUSTER_TYPES.ConfigMap, SPACE, 'taken-extauth')
  await apply('taken', { replicas: 1 })
  await eventually(() => deployment('taken'))
})

test('a name that no Service may have, the port of probes, and a CA named as a Secret are no hindrance', async () => {
  const provider = {
    name: 'idp',
    issuerUrl: 'https://idp.example.com',
    audience: 'mcp',
    introspectionUrl: 'https://idp.example.com/introspect',
    clientId: 'c',
    clientSecretRef: { name: 'idp', key: 'secret' },
    caBundleRef: { configMapRef: { name: 'idp', key: 'ca.crt' } },
  }
  const auth = { mode: 'oauth', oauth: { resourceUrl: 'https://mcp.example.com', providers: [provider] } }
  await apply('2.dots', { port: 8081, oidcConfig: undefined, auth })
  const found = await eventually(() => deployment('2.dots'))
  await eventually(() => get(CLUSTER_TYPES.Service, '2.dots'))
  const { containers } = (found.spec as { template: { spec: { containers: { ports: object[] }[] } } }).template.spec
  expect(containers[0]?.ports).toMatchObject([{ containerPort: 8081 }, { containerPort: 8082 }])
  await runAll(instanceName('2.dots'), 1)
  await eventually(async () => expect(await ready('2.dots')).toMatchObject({ status: 'True' }))
})

test('kubectl and autoscalers scale the proxy itself', async () => {
  await apply('scaled', { replicas: 1 })
  const replicas = async (): Promise<unknown> =>
    ((await deployment('scaled')).spec as { readonly replicas?: number }).replicas
  await eventually(async () => expect(await replicas()).toBe(1))
  const where = ['--kubeconfig', cluster.plane.kubeconfigPath, '-n', SPACE]
  execFileSync('kubectl', ['scale', 'mcpremoteproxy/scaled', '--replicas=2', ...where])
  await eventually(async () => expect(await replicas()).toBe(2))
  const path = `/apis/extauth.dev/v1alpha1/namespaces/${SPACE}/mcpremoteproxies/scaled/scale`
  await eventually(async () =>
    expect(await client.raw('GET', path)).toMatchObject({
      spec: { replicas: 2 },
      status: {
        replicas: 2,
        selector: 'app.kubernetes.io/name=mcp-extauth,app.kubernetes.io/instance=scaled',
      },
    }),
  )
})

test('an autoscaler takes the number of pods as it is, and goes again', async () => {
  const replicasOf = async (name: string) => ((await deployment(name)).spec as { replicas: number }).replicas
  const autoscaler = () => get(CLUSTER_TYPES.HorizontalPodAutoscaler, 'automatic')
  await apply('automatic', { replicas: 3 })
  await eventually(async () => expect(await replicasOf('automatic')).toBe(3))
  await apply('automatic', { autoscaling: { minReplicas: 2, maxReplicas: 5 } })
  await eventually(async () => expect((await autoscaler()).spec).toMatchObject({ minReplicas: 2, maxReplicas: 5 }))
  await cluster.operator.idle()
  expect(await replicasOf('automatic')).toBe(3)
  // As the autoscaler does.
  const scale = { spec: { replicas: 4 } }
  await client.merge(CLUSTER_TYPES.Deployment, SPACE, ownedName('automatic'), scale, { subresource: 'scale' })
  await apply('automatic', { autoscaling: { minReplicas: 2, maxReplicas: 6 }, resources: { requests: { cpu: '1m' } } })
  await eventually(async () => expect((await autoscaler()).spec).toMatchObject({ maxReplicas: 6 }))
  await cluster.operator.idle()
  expect(await replicasOf('automatic')).toBe(4)
  await apply('automatic', { replicas: 2 })
  await eventually(() => expect(autoscaler()).rejects.toMatchObject({ status: 404 }))
  await eventually(async () => expect(await replicasOf('automatic')).toBe(2))
  await expect(apply('automatic', { autoscaling: { minReplicas: 2, maxReplicas: 1 } })).rejects.toMatchObject({
    message: expect.stringContaining('expected minReplicas of at most maxReplicas') as string,
  })
})

test('a budget and a service account that are not wanted any more go', async () => {
  await apply('shrinks', { replicas: 2 })
  await eventually(() => get(CLUSTER_TYPES.PodDisruptionBudget, 'shrinks'))
  await apply('shrinks', { replicas: 1, serviceAccountName: 'own' })
  await eventually(() =>
    expect(get(CLUSTER_TYPES.PodDisruptionBudget, 'shrinks')).rejects.toMatchObject({ status: 404 }),
  )
  await eventually(() => expect(get(CLUSTER_TYPES.ServiceAccount, 'shrinks')).rejects.toMatchObject({ status: 404 }))
})

// The garbage collector learns of a new kind within half a minute.
test('an AWS role is set on the service account, a change recreates the pods, and its removal clears it', async () => {
  const role = (name: string) => `arn:aws:iam::123456789012:role/${name}`
  const seen = async () => {
    const { template } = (await deployment('of-aws')).spec as { template: KubeObject }
    const account = await get(CLUSTER_TYPES.ServiceAccount, 'of-aws')
    return [
      account.metadata.annotations?.['eks.amazonaws.com/role-arn'],
      template.metadata.annotations?.['extauth.dev/aws-role-arn'],
    ]
  }
  const [first, second] = [role('first'), role('second')]
  const generations = []
  for (const awsRoleArn of [first, second, undefined]) {
    await apply('of-aws', awsRoleArn === undefined ? {} : { awsRoleArn })
    await eventually(async () => expect(await seen()).toEqual([awsRoleArn, awsRoleArn]))
    await cluster.operator.idle()
    generations.push((await deployment('of-aws')).metadata.generation)
  }
  expect(generations).toEqual([1, 2, 3])
  const both = apply('of-aws', { awsRoleArn: first, serviceAccountName: 'mine' })
  await expect(both).rejects.toMatchObject({ message: expect.stringContaining('mutually exclusive') as string })
})

test('a proxy that is deleted leaves nothing behind', { timeout: 120_000 }, async () => {
  await apply('goes')
  await eventually(() => get(CLUSTER_TYPES.Service, 'goes'))
  await client.remove(types.MCPRemoteProxy, SPACE, 'goes')
  for (const type of [CLUSTER_TYPES.Deployment, CLUSTER_TYPES.Service, CLUSTER_TYPES.ConfigMap])
    await eventually(() => expect(get(type, 'goes')).rejects.toMatchObject({ status: 404 }), 90_000)
})

test.each([
  ['no accepted callers', { oidcConfig: undefined }, 'SpecInvalid'],
  ['a config that is not there', { externalAuthConfigRef: { name: 'nobody' } }, 'ExternalAuthConfigNotFound'],
  [
    'a server that is no server',
    { authServerRef: { kind: 'MCPExternalAuthConfig', name: 'bearer' } },
    'AuthServerRefInvalidType',
  ],
])('with %s it says so and makes nothing', async (_what, more, reason) => {
  const name = reason.toLowerCase()
  await apply(name, more)
  await eventually(async () => expect(await ready(name)).toMatchObject({ status: 'False', reason }))
  await expect(deployment(name)).rejects.toMatchObject({ status: 404 })
})
