import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePort, type LabBackend, startLabBackend } from '../../lab/index.ts'
import type { KubeObject, ResourceType } from '../../src/kube/index.ts'
import { CLUSTER_TYPES, podKeys } from '../../src/operator/index.ts'
import { MODES } from '../support/lab/client-behaviours.ts'
import { eventually } from './support/control-plane.ts'
import { openKubelet } from './support/kubelet.ts'
import { anonymousCallers, config, GROUP, namespaceObject, types, workload } from './support/operator-rig.ts'
import { markReady, podsOf } from './support/pods.ts'
import { useCluster } from './support/use-cluster.ts'

// Proxies run from exactly what a kubelet mounts of the pods that the operator makes; callers are service accounts.
const SPACE = 'real'
const ISSUER = 'https://kubernetes.default.svc.cluster.local'
/** Admin listeners of the processes that run pods, by the address that the pod has in the cluster. */
const admins = new Map<string, string>()
const readPod = async (url: string): Promise<unknown> => {
  const answer = await fetch(`${admins.get(new URL(url).hostname)}/readiness`)
  return answer.json()
}
const cluster = useCluster({ webhook: true, readPod }, async ({ client }) => {
  await client.apply(
    CLUSTER_TYPES.Namespace,
    namespaceObject(SPACE, { 'pod-security.kubernetes.io/enforce': 'restricted' }),
  )
  await client.apply(CLUSTER_TYPES.ServiceAccount, core('ServiceAccount', 'caller'))
  await client.apply(types.MCPExternalAuthConfig, config('bearer', SPACE))
  await rotate('first')
})

const keys = podKeys(GROUP)
let backend: LabBackend
/** The bearer that the backend lets in. */
let wanted = ''

beforeAll(async () => {
  const demand = {
    kind: 'known',
    verify: (token: string) => (token === wanted ? { token: 'known' } : undefined),
  } as const
  const clock = { now: () => Date.now() }
  backend = await startLabBackend({ port: 0, mounts: { '/mcp': demand, '/other': demand }, clock })
})
afterAll(() => backend?.close())

const core = (kind: string, name: string, more: object = {}): KubeObject => ({
  apiVersion: 'v1',
  kind,
  metadata: { name, namespace: SPACE },
  ...more,
})

/** A pod of one container that asks for the sidecar. */
const askingPod = (name: string, annotations: Record<string, string>): KubeObject => {
  const securityContext = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: SPACE, labels: { [keys.inject]: 'true' }, annotations },
    spec: {
      securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [{ name: 'server', image: 'tickets', securityContext }],
    },
  }
}

async function rotate(value: string): Promise<void> {
  wanted = value
  const data = { value: Buffer.from(value).toString('base64') }
  await cluster.client.apply(CLUSTER_TYPES.Secret, core('Secret', 'token', { data }))
}

/** A token of a service account, as the API server signs it. */
async function tokenFor(audience: string): Promise<string> {
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { audiences: [audience] } }
  const path = `/api/v1/namespaces/${SPACE}/serviceaccounts/caller/token`
  const answer = await eventually(() => cluster.client.raw('POST', path, body))
  return (answer as { status: { token: string } }).status.token
}

/** Lists and calls tools with every official client. */
async function callByEveryClient(url: string, token: string): Promise<void> {
  for (const connect of Object.values(MODES)) {
    const client = await connect({ url, backend, headers: { authorization: `Bearer ${token}` } })
    const { tools } = await client.list()
    expect(tools.map(({ name }) => name)).toContain('show_request')
    expect(JSON.stringify(await client.call({ name: 'show_request' }))).not.toContain(token)
    await client.close()
  }
}

const call = async (url: string, token: string): Promise<number> => {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    authorization: `Bearer ${token}`,
  }
  const answer = await fetch(url, { method: 'POST', body, headers })
  await answer.body?.cancel()
  return answer.status
}

const get = (type: ResourceType, name: string): Promise<KubeObject> => cluster.client.get(type, SPACE, name)
const generationOf = async (name: string) =>
  (await get(CLUSTER_TYPES.Deployment, `${name}-extauth`)).metadata.generation
const replicaSets = async (name: string): Promise<number> => {
  const type = { ...CLUSTER_TYPES.Deployment, kind: 'ReplicaSet', plural: 'replicasets' }
  const selection = { namespace: SPACE, labelSelector: `app.kubernetes.io/instance=${name}` }
  return (await cluster.client.list(type, selection)).items.length
}

test('the pod of an MCPRemoteProxy serves service accounts; its configuration and secrets change without a rollout', async () => {
  const { client, plane } = cluster
  const port = await freePort()
  const specFor = (mount: string, more: object = {}) => ({
    remoteUrl: `${backend.url}${mount}`,
    port,
    externalAuthConfigRef: { name: 'bearer' },
    resourceUrl: `http://127.0.0.1:${port}`,
    oidcConfig: {
      type: 'kubernetes',
      kubernetes: { issuer: ISSUER, audience: 'mcp', jwksUrl: `${plane.server}/openid/v1/jwks` },
    },
    ...more,
  })
  const apply = (spec: object) => client.apply(types.MCPRemoteProxy, workload('MCPRemoteProxy', 'serves', spec, SPACE))
  await apply(specFor('/mcp'))
  const pod = await eventually(async () => {
    const selection = { namespace: SPACE, labelSelector: 'app.kubernetes.io/instance=serves' }
    const [found] = (await client.list(CLUSTER_TYPES.Pod, selection)).items
    if (found === undefined) throw new Error('no pod yet')
    return found
  })
  const kubelet = await eventually(() => openKubelet(client, pod, 'extauth'))
  // In a pod, 8081 is its own; here other tests may have it.
  const proxy = kubelet.start(['--admin', '127.0.0.1:0'])
  try {
    await proxy.line('listening')
    const url = `http://127.0.0.1:${port}/mcp`
    const token = await tokenFor('mcp')
    await callByEveryClient(url, token)
    expect(await call(url, await tokenFor('somebody-else'))).toBe(401)

    const generation = await generationOf('serves')
    await rotate('second')
    await kubelet.sync()
    await eventually(async () => expect(await call(url, token)).toBe(200))

    const before = (await get(CLUSTER_TYPES.ConfigMap, 'serves-extauth'))['data']
    await apply(specFor('/other'))
    await eventually(async () =>
      expect((await get(CLUSTER_TYPES.ConfigMap, 'serves-extauth'))['data']).not.toEqual(before),
    )
    await kubelet.sync()
    const others = () => backend.requests('/other').length
    await eventually(async () => {
      await call(`http://127.0.0.1:${port}/other`, token)
      expect(others()).toBeGreaterThan(0)
    })
    // Neither was a rollout.
    expect([await generationOf('serves'), await replicaSets('serves')]).toEqual([generation, 1])

    await apply(specFor('/other', { resources: { requests: { cpu: '10m' } } }))
    await eventually(async () => expect(await replicaSets('serves')).toBe(2))
    await cluster.operator.idle()
    expect(await generationOf('serves')).toBe((generation ?? 0) + 1)

    // A pod that does not mount what the config names by now goes on with what it has, until its successor is there.
    const tokenSecretRef = { name: 'token-to-come', key: 'value' }
    const spec = { type: 'bearerToken', bearerToken: { tokenSecretRef } }
    await client.apply(types.MCPExternalAuthConfig, config('bearer', SPACE, spec))
    await eventually(async () =>
      expect(JSON.stringify(await get(CLUSTER_TYPES.ConfigMap, 'serves-extauth'))).toContain('token-to-come'),
    )
    await kubelet.sync()
    await proxy.line('new configuration rejected; the previous one stays active')
    expect(await call(`http://127.0.0.1:${port}/other`, token)).toBe(200)
    await client.apply(types.MCPExternalAuthConfig, config('bearer', SPACE))

    proxy.process.kill('SIGTERM')
    expect(await proxy.ended).toBe(0)
  } finally {
    proxy.process.kill('SIGKILL')
    kubelet.close()
  }
}, 120_000)

test('a proxy with connections is let in and Ready, and gives a caller without an account the link', async () => {
  const { client, plane } = cluster
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  await client.apply(CLUSTER_TYPES.Secret, core('Secret', 'seal', { data: { key: btoa('k'.repeat(32)) } }))
  const bearer = { type: 'bearerToken', bearerToken: { connectionName: 'notes' } }
  await client.apply(types.MCPExternalAuthConfig, config('own-account', SPACE, bearer))
  const connections = {
    baseUrl: url,
    storage: { type: 'memory' },
    keySecretRefs: [{ name: 'seal', key: 'key' }],
    login: [{ issuerUrl: ISSUER, clientId: 'connect' }],
    providers: [{ name: 'notes', type: 'secret', secret: { label: 'API key' } }],
  }
  const spec = {
    remoteUrl: `${backend.url}/mcp`,
    port,
    externalAuthConfigRef: { name: 'own-account' },
    resourceUrl: url,
    oidcConfig: {
      type: 'kubernetes',
      kubernetes: { issuer: ISSUER, audience: 'mcp', jwksUrl: `${plane.server}/openid/v1/jwks` },
    },
    connections,
    replicas: 1,
  }
  const refused = client.apply(
    types.MCPRemoteProxy,
    workload('MCPRemoteProxy', 'asks', { ...spec, connections: { ...connections, singleUser: true } }, SPACE),
  )
  await expect(refused).rejects.toMatchObject({ message: expect.stringContaining('singleUser') as string })
  await client.apply(types.MCPRemoteProxy, workload('MCPRemoteProxy', 'asks', spec, SPACE))
  const pods = await podsOf(client, SPACE, 'asks')
  const [pod] = pods
  if (pod === undefined) throw new Error('no pod')
  const kubelet = await eventually(() => openKubelet(client, pod, 'extauth'))
  const proxy = kubelet.start(['--admin', '127.0.0.1:0'])
  try {
    const { admin } = await proxy.line('listening')
    expect((await fetch(`${String(admin)}/readiness`)).status).toBe(200)
    await markReady(client, pods)
    await eventually(async () =>
      expect((await get(types.MCPRemoteProxy, 'asks')).status).toMatchObject({
        conditions: expect.arrayContaining([
          expect.objectContaining({ type: 'Ready', status: 'True', reason: 'ProxyReady' }),
          expect.objectContaining({ type: 'SessionStorageWarning', reason: 'SessionStorageNotRequired' }),
        ]) as unknown,
      }),
    )
    const token = await tokenFor('mcp')
    for (const connect of Object.values(MODES)) {
      const mcp = await connect({ url: `${url}/mcp`, backend, headers: { authorization: `Bearer ${token}` } })
      const { tools } = await mcp.list()
      expect(tools.map(({ name }) => name)).toEqual(['connect_account'])
      expect(JSON.stringify(await mcp.call({ name: 'connect_account' }))).toContain(`${url}/connect/`)
      await mcp.close()
    }
    proxy.process.kill('SIGTERM')
    expect(await proxy.ended).toBe(0)
  } finally {
    proxy.process.kill('SIGKILL')
    kubelet.close()
  }
}, 120_000)

test('a proxy shows whether its pods run its configuration, and whether they reach the remote server', async () => {
  const { client } = cluster
  const apply = (remoteUrl: string) => {
    const spec = { remoteUrl, auth: { mode: 'anonymous' } }
    return client.apply(types.MCPRemoteProxy, workload('MCPRemoteProxy', 'reports', spec, SPACE))
  }
  const conditions = async () => {
    const { status } = await get(types.MCPRemoteProxy, 'reports')
    const { conditions: all = [] } = status as { conditions?: { type: string; status: string; reason: string }[] }
    const of = (wanted: string) => all.find(({ type }) => type === wanted)
    return [of('Programmed'), of('RemoteAvailable')].map((one) => `${one?.status} ${one?.reason}`)
  }
  await apply(`${backend.url}/mcp`)
  const pods = await podsOf(client, SPACE, 'reports')
  const [pod] = pods
  if (pod === undefined) throw new Error('no pod')
  await eventually(async () => expect(await conditions()).toEqual(['False NoReadyPods', 'Unknown NotProbed']))
  const kubelet = await eventually(() => openKubelet(client, pod, 'extauth'))
  const proxy = kubelet.start(['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'])
  try {
    const { admin } = await proxy.line('listening')
    admins.set('10.1.2.3', String(admin))
    await markReady(client, pods, '10.1.2.3')
    await eventually(async () => {
      expect(await conditions()).toEqual(['True ConfigurationProgrammed', 'True RemoteReachable'])
    }, 60_000)

    const closed = `http://127.0.0.1:${await freePort()}`
    await apply(`${closed}/mcp`)
    await eventually(async () => expect((await conditions())[0]).toBe('False ConfigurationPending'))
    await kubelet.sync()
    await eventually(async () => {
      expect(await conditions()).toEqual(['True ConfigurationProgrammed', 'False RemoteUnreachable'])
    }, 60_000)
    // A configuration on its way is no reason to worry.
    const { items } = await client.list(CLUSTER_TYPES.Event, { namespace: SPACE })
    const warnings = items.filter((event) => {
      const { type, regarding } = event as { type?: string; regarding?: { name?: string } }
      return type === 'Warning' && regarding?.name === 'reports'
    })
    expect(warnings.map((event) => event['reason'])).toEqual(['RemoteUnreachable'])
  } finally {
    proxy.process.kill('SIGKILL')
    kubelet.close()
  }
}, 180_000)

test('the sidecar of an injected pod serves service accounts', async () => {
  const { client, plane } = cluster
  const listenPort = await freePort()
  const account = '/var/run/secrets/kubernetes.io/serviceaccount'
  const callers = {
    mode: 'oauth',
    oauth: {
      resourceUrl: `http://127.0.0.1:${listenPort}`,
      providers: [
        {
          name: 'cluster',
          issuerUrl: ISSUER,
          audience: 'tickets',
          jwksUrl: `${plane.server}/openid/v1/jwks`,
          caCertPath: `${account}/ca.crt`,
          authTokenFile: `${account}/token`,
        },
      ],
    },
  }
  const data = { 'callers.yaml': JSON.stringify({ auth: callers }) }
  await client.apply(CLUSTER_TYPES.ConfigMap, core('ConfigMap', 'callers', { data }))
  const asked = askingPod('tickets', {
    [keys.externalAuth]: 'bearer',
    [keys.targetPort]: new URL(backend.url).port,
    [keys.callers]: 'callers',
    [keys.listenPort]: String(listenPort),
  })
  const pod = await eventually(() => client.create(CLUSTER_TYPES.Pod, asked))
  // The ConfigMap of the config is made when the pod is seen.
  const kubelet = await eventually(() => openKubelet(client, pod, 'extauth'))
  const proxy = kubelet.start(['--admin', '127.0.0.1:0'])
  try {
    await proxy.line('listening')
    const url = `http://127.0.0.1:${listenPort}/mcp`
    await callByEveryClient(url, await tokenFor('tickets'))
    expect(await call(url, await tokenFor('mcp'))).toBe(401)
    expect(await call(url, 'nothing')).toBe(401)
    proxy.process.kill('SIGTERM')
    expect(await proxy.ended).toBe(0)
  } finally {
    proxy.process.kill('SIGKILL')
    kubelet.close()
  }
}, 120_000)

test('a config says which injected pods use it, and stays until the last of them is gone', async () => {
  const { client } = cluster
  await client.apply(types.MCPExternalAuthConfig, config('in-use', SPACE))
  await client.apply(CLUSTER_TYPES.ConfigMap, anonymousCallers(SPACE))
  const annotations = { [keys.externalAuth]: 'in-use', [keys.targetPort]: '3000', [keys.callers]: 'callers' }
  await eventually(() => client.create(CLUSTER_TYPES.Pod, askingPod('user', annotations)))
  const said = async () => {
    const { status } = await get(types.MCPExternalAuthConfig, 'in-use')
    const { referenceCount, conditions } = status as {
      readonly referenceCount: number
      readonly conditions: readonly { readonly type: string; readonly status: string; readonly message: string }[]
    }
    const of = (wanted: string) => conditions.find(({ type }) => type === wanted)
    return { referenceCount, current: of('InjectedPodsCurrent'), blocked: of('DeletionBlocked') }
  }
  const named = { status: 'True', message: expect.stringContaining('user') as string }
  await eventually(async () => expect(await said()).toMatchObject({ referenceCount: 1, current: named }))
  await client.remove(types.MCPExternalAuthConfig, SPACE, 'in-use')
  await eventually(async () => expect(await said()).toMatchObject({ blocked: named }))
  await client.remove(CLUSTER_TYPES.Pod, SPACE, 'user')
  await eventually(() => expect(get(types.MCPExternalAuthConfig, 'in-use')).rejects.toMatchObject({ status: 404 }))
}, 120_000)
