import { execFileSync } from 'node:child_process'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { KubeClient, KubeConnection, KubeObject } from '../../src/kube/index.ts'
import { CLUSTER_TYPES, imageOfPod, NAMES, type Operator, podKeys } from '../../src/operator/index.ts'
import { type AuditEvent, requestsOf } from './support/audit-log.ts'
import { type ControlPlane, eventually, startControlPlane } from './support/control-plane.ts'
import { installGatewayApi } from './support/gateway-api.ts'
import { markReady, podsOf } from './support/pods.ts'
import {
  anonymousCallers,
  config,
  connect,
  GROUP,
  kustomize,
  namespaceObject,
  root,
  runOperator,
  types,
  workload,
} from './support/operator-rig.ts'

const SYSTEM = 'extauth-system'
const USER = `system:serviceaccount:${SYSTEM}:extauth-operator`
let plane: ControlPlane
let admin: KubeConnection
let asOperator: KubeConnection
let operator: Operator

const kubectl = (...args: string[]): string =>
  execFileSync('kubectl', ['--kubeconfig', plane.kubeconfigPath, ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  })

beforeAll(async () => {
  plane = await startControlPlane()
  admin = connect(plane)
  await installGatewayApi(admin.client)
  kubectl('apply', '-k', path.join(root, 'config/deploy/operator'))
  const token = await eventually(() => kubectl('create', 'token', 'extauth-operator', '-n', SYSTEM).trim())
  asOperator = connect(plane, token)
  operator = await runOperator(asOperator.client, { webhook: true, installer: admin.client, ownNamespace: SYSTEM })
}, 240_000)

afterAll(async () => {
  await operator?.close()
  await asOperator?.close()
  await admin?.close()
  await plane?.close()
}, 60_000)

const used = (): AuditEvent[] => requestsOf(plane, USER)

interface Rule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly verbs: readonly string[]
}

/** A proxy with an autoscaler, and then without. */
async function useAutoscaler(namespace: string): Promise<void> {
  const { client } = admin
  const open = { remoteUrl: 'https://api.example.com/mcp', auth: { mode: 'anonymous' } }
  const apply = (more: object) =>
    client.apply(types.MCPRemoteProxy, workload('MCPRemoteProxy', 'scaled', { ...open, ...more }, namespace))
  const autoscaler = () => client.get(CLUSTER_TYPES.HorizontalPodAutoscaler, namespace, 'scaled-extauth')
  await apply({ autoscaling: { maxReplicas: 3 } })
  await eventually(autoscaler)
  await apply({ replicas: 1 })
  await eventually(() => expect(autoscaler()).rejects.toMatchObject({ status: 404 }))
}

/** Makes the operator do all that it does, in a namespace. */
async function useAll(namespace: string, from = 0): Promise<void> {
  const { client } = admin
  await client.apply(CLUSTER_TYPES.Namespace, namespaceObject(namespace))
  await client.apply(types.MCPExternalAuthConfig, config('c', namespace))
  const openTelemetry = { enabled: true, endpoint: 'otel.example.com:4318', tracing: { enabled: true } }
  await client.apply(types.MCPTelemetryConfig, workload('MCPTelemetryConfig', 't', { openTelemetry }, namespace))
  await client.apply(types.MCPToolConfig, workload('MCPToolConfig', 'f', { toolsFilter: ['search'] }, namespace))
  const spec = {
    telemetryConfigRef: { name: 't', serviceName: 'measured' },
    toolConfigRef: { name: 'f' },
    remoteUrl: 'https://api.example.com/mcp',
    externalAuthConfigRef: { name: 'c' },
    resourceUrl: 'https://mcp.example.com',
    oidcConfig: { type: 'inline', inline: { issuer: 'https://idp.example.com', audience: 'mcp' } },
    replicas: 2,
    ingress: { host: 'mcp.example.com' },
    gateway: { parentRefs: [{ name: 'public' }] },
  }
  const proxy = await client.apply(types.MCPRemoteProxy, workload('MCPRemoteProxy', 'p', spec, namespace))
  const callers = { type: 'inline', inline: spec.oidcConfig.inline }
  const { audience: _perReference, ...inline } = callers.inline
  await client.apply(types.MCPOIDCConfig, workload('MCPOIDCConfig', 'o', { ...callers, inline }, namespace))
  await eventually(async () =>
    expect((await client.get(types.MCPOIDCConfig, namespace, 'o')).status).toHaveProperty('configHash'),
  )
  for (const [type, name] of [
    [types.MCPTelemetryConfig, 't'],
    [types.MCPToolConfig, 'f'],
  ] as const)
    await eventually(async () =>
      expect((await client.get(type, namespace, name)).status).toMatchObject({
        configHash: expect.any(String) as string,
        referencingWorkloads: [{ kind: 'MCPRemoteProxy', name: 'p' }],
      }),
    )
  const ref = { externalAuthConfigRef: { name: 'c' } }
  const others = {
    MCPServer: ref,
    MCPServerEntry: { remoteUrl: spec.remoteUrl, ...ref },
    VirtualMCPServer: { outgoingAuth: { default: ref } },
  }
  for (const kind of ['MCPServer', 'MCPServerEntry', 'VirtualMCPServer'] as const) {
    await client.apply(types[kind], workload(kind, 'other', others[kind], namespace))
    await eventually(async () =>
      expect((await client.get(types[kind], namespace, 'other')).status).toMatchObject({
        observedGeneration: 1,
        conditions: [{ type: 'Ready', status: 'True' }, { type: 'ExternalAuthConfigValidated' }],
      }),
    )
  }
  await eventually(() => client.get(CLUSTER_TYPES.PodDisruptionBudget, namespace, 'p-extauth'))
  await useAutoscaler(namespace)
  await eventually(async () => {
    const pods = await client.list(CLUSTER_TYPES.Pod, {
      namespace,
      labelSelector: 'app.kubernetes.io/instance=p',
    })
    expect(pods.items.length).toBeGreaterThan(0)
  })
  await eventually(() => client.get(CLUSTER_TYPES.Ingress, namespace, 'p-extauth'))
  await eventually(() => client.get(CLUSTER_TYPES.HTTPRoute, namespace, 'p-extauth'))
  await replaceEarlier(proxy, namespace)
  await client.apply(CLUSTER_TYPES.ConfigMap, anonymousCallers(namespace))
  const labelSelector = 'app.kubernetes.io/component=operator'
  const own = await eventually(
    async () => (await client.list(CLUSTER_TYPES.Pod, { namespace: SYSTEM, labelSelector })).items[0],
  )
  expect(await imageOfPod(asOperator.client, SYSTEM, own?.metadata.name ?? '')).toBe('mcp-extauth:0.2.0')
  const keys = podKeys(GROUP)
  const annotations = { [keys.externalAuth]: 'c', [keys.targetPort]: '3000', [keys.callers]: 'callers' }
  const pod: KubeObject = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'injected', namespace, labels: { [keys.inject]: 'true' }, annotations },
    spec: { containers: [{ name: 'x', image: 'x' }] },
  }
  await eventually(() => client.create(CLUSTER_TYPES.Pod, pod))
  await eventually(() => client.get(CLUSTER_TYPES.ConfigMap, namespace, 'extauth-inject-c'))
  const { ingress: _ingress, gateway: _gateway, ...less } = spec
  await client.apply(
    types.MCPRemoteProxy,
    workload('MCPRemoteProxy', 'p', { ...less, replicas: 1, serviceAccountName: 'own' }, namespace),
  )
  for (const type of [CLUSTER_TYPES.Ingress, CLUSTER_TYPES.HTTPRoute])
    await eventually(() => expect(client.get(type, namespace, 'p-extauth')).rejects.toMatchObject({ status: 404 }))
  await eventually(() =>
    expect(client.get(CLUSTER_TYPES.ServiceAccount, namespace, 'p-extauth')).rejects.toMatchObject({ status: 404 }),
  )
  await eventually(() =>
    expect(client.get(CLUSTER_TYPES.PodDisruptionBudget, namespace, 'p-extauth')).rejects.toMatchObject({
      status: 404,
    }),
  )

  // The lease is renewed every two seconds.
  await eventually(() =>
    expect(
      used()
        .slice(from)
        .some(({ verb, objectRef }) => verb === 'update' && objectRef?.resource === 'leases'),
    ).toBe(true),
  )
}

/** Objects of an earlier release, deleted once pods are available. */
async function replaceEarlier(
  { apiVersion, kind, metadata: { name, uid } }: KubeObject,
  namespace: string,
): Promise<void> {
  const { client } = admin
  const selector = { 'app.kubernetes.io/name': 'mcp-extauth', 'app.kubernetes.io/instance': name }
  const metadata = {
    name,
    namespace,
    labels: { ...selector, 'app.kubernetes.io/managed-by': 'mcp-extauth-operator' },
    ownerReferences: [{ apiVersion, kind, name, uid: uid ?? '', controller: true }],
  }
  const containers = [{ name: 'extauth', image: 'x' }]
  const template = { metadata: { labels: { ...selector, earlier: 'yes' } }, spec: { containers } }
  const earlier = [
    [CLUSTER_TYPES.ConfigMap, { apiVersion: 'v1', kind: 'ConfigMap', metadata }],
    [CLUSTER_TYPES.ServiceAccount, { apiVersion: 'v1', kind: 'ServiceAccount', metadata }],
    [
      CLUSTER_TYPES.NetworkPolicy,
      {
        apiVersion: 'networking.k8s.io/v1',
        kind: 'NetworkPolicy',
        metadata,
        spec: { podSelector: { matchLabels: selector } },
      },
    ],
    [
      CLUSTER_TYPES.Deployment,
      {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata,
        spec: { replicas: 0, selector: { matchLabels: { earlier: 'yes', ...selector } }, template },
      },
    ],
  ] as const
  for (const [type, object] of earlier) await client.create(type, object)
  await markReady(client, await podsOf(client, namespace, name, 2))
  for (const [type] of earlier)
    await eventually(() => expect(client.get(type, namespace, name)).rejects.toMatchObject({ status: 404 }))
}

/** Nothing was refused from an event of the audit log on; gives the rights of the manifests in `folder` that were not used. */
function unusedRights(folder: string, from: number): string[] {
  const events = used().slice(from)
  const refused = events.filter(({ responseStatus }) => responseStatus?.code === 403)
  expect(refused.map(({ verb, objectRef }) => `${verb} ${objectRef?.resource}`)).toEqual([])
  const done = new Set(
    events.map(({ verb, objectRef }) => {
      const resource = [objectRef?.resource, objectRef?.subresource].filter((part) => part !== undefined).join('/')
      return `${verb} ${objectRef?.apiGroup ?? ''}/${resource}`
    }),
  )
  const granted = kustomize(folder)
    .filter(({ kind }) => kind === 'ClusterRole' || kind === 'Role')
    .flatMap((role) => role['rules'] as Rule[])
    .flatMap(({ apiGroups, resources, verbs }) =>
      apiGroups.flatMap((group) =>
        resources.flatMap((resource) => verbs.map((verb) => `${verb} ${group}/${resource}`)),
      ),
    )
  // `create` goes with an apply of what is not there yet and is judged inside of the same request; updates of the webhook
  // configurations and of the certificate come with a renewal, which has a test of its own.
  const inside =
    /^create \/(configmaps|services|serviceaccounts)$|^create (apps|(gateway\.)?networking\.k8s\.io|policy|autoscaling)\/|^update \/secrets$/
  return granted.filter((right) => !done.has(right) && !inside.test(right))
}

test('the rights that it ships with are enough for all that it does, and none is left over', async () => {
  await useAll('work')
  expect(unusedRights('config/deploy/operator', 0)).toEqual([])
}, 180_000)

test('what is applied a second time raises no generation', async () => {
  await admin.client.remove(CLUSTER_TYPES.ValidatingWebhookConfiguration, undefined, NAMES.webhooks)
  await admin.client.remove(CLUSTER_TYPES.MutatingWebhookConfiguration, undefined, NAMES.webhooks)
  const generations = (): string =>
    kubectl(
      'get',
      'deployments,networkpolicies,poddisruptionbudgets',
      '-n',
      SYSTEM,
      '-o',
      'jsonpath={range .items[*]}{.kind}/{.metadata.name}={.metadata.generation}{"\\n"}{end}',
    ) +
    kubectl(
      'get',
      'crds,validatingwebhookconfigurations,mutatingwebhookconfigurations',
      '-o',
      'jsonpath={range .items[*]}{.kind}/{.metadata.name}={.metadata.generation}{"\\n"}{end}',
    )
  kubectl('apply', '-k', path.join(root, 'config/deploy/operator'))
  const before = generations()
  kubectl('apply', '-k', path.join(root, 'config/deploy/operator'))
  expect(generations()).toBe(before)
  expect(before).toContain('CustomResourceDefinition/mcpremoteproxies.extauth.dev')
})

test('with one namespace, Roles in it are enough, none is left over, and others are not looked at', async () => {
  await operator.close()
  const { client } = admin
  await client.apply(CLUSTER_TYPES.Namespace, namespaceObject('mcp'))
  kubectl('delete', 'clusterroles,clusterrolebindings', '-l', 'app.kubernetes.io/name=mcp-extauth')
  kubectl('delete', `lease/${NAMES.lease}`, `secret/${NAMES.secret}`, '-n', SYSTEM)
  kubectl('apply', '-k', path.join(root, 'config/deploy/operator-namespaced'))
  const from = used().length
  const options = { ownNamespace: SYSTEM, namespace: 'mcp' }
  operator = await runOperator(asOperator.client, { ...options, webhook: true, installer: client })
  await client.apply(types.MCPExternalAuthConfig, config('elsewhere', 'work'))
  await useAll('mcp', from)
  await operator.idle()
  expect(unusedRights('config/deploy/operator-namespaced', from)).toEqual([])
  expect((await client.get(types.MCPExternalAuthConfig, 'work', 'elsewhere')).status).toEqual({
    observedGeneration: -1,
  })
}, 120_000)

test('kubectl shows type, validity, readiness and why, a count of references and age of a config', () => {
  const [head = '', ...rows] = kubectl('get', 'extauth', '-n', 'mcp').trim().split('\n')
  expect(head.split(/\s{2,}/)).toEqual(['NAME', 'TYPE', 'VALID', 'READY', 'REASON', 'REFERENCES', 'AGE'])
  // A proxy, three workloads that others run, and an injected pod.
  expect(rows.map((row) => row.split(/\s+/).slice(0, 6))).toEqual([
    ['c', 'bearerToken', 'True', 'True', 'ConfigReady', '5'],
  ])
  expect(kubectl('get', 'mcp', '-n', 'mcp')).toContain('mcpremoteproxy.extauth.dev/p')
})

const removeWebhooks = (): string =>
  kubectl('delete', 'validatingwebhookconfigurations,mutatingwebhookconfigurations', NAMES.webhooks)

/** The same client; what it hands out of Secrets is recorded. */
const recording = (client: KubeClient, seen: KubeObject[]): KubeClient => ({
  ...client,
  async list(type, selection) {
    const page = await client.list(type, selection)
    if (type.kind === 'Secret') seen.push(...page.items)
    return page
  },
  async *watch(type, selection, watchOptions) {
    for await (const event of client.watch(type, selection, watchOptions)) {
      if (type.kind === 'Secret') seen.push(event.object)
      yield event
    }
  },
})

test('the overlay for Secrets is enough to follow which exist, and nothing but their metadata is asked for', async () => {
  await operator.close()
  removeWebhooks()
  kubectl('apply', '-k', path.join(root, 'config/deploy/operator-watch-secrets'))
  // The Service that they name leads nowhere here.
  removeWebhooks()
  const from = used().length
  const seen: KubeObject[] = []
  operator = await runOperator(recording(asOperator.client, seen), { ownNamespace: SYSTEM, watchSecrets: true })
  const says = (status: string, message: string): Promise<void> =>
    eventually(async () => {
      const conditions = [{ type: 'SecretsResolved', status, message }]
      for (const [type, name] of [
        [types.MCPExternalAuthConfig, 'c'],
        [types.MCPRemoteProxy, 'p'],
      ] as const)
        expect((await admin.client.get(type, 'work', name)).status).toMatchObject({
          conditions: expect.arrayContaining(
            conditions.map((one) => expect.objectContaining(one) as unknown),
          ) as unknown,
        })
    })
  await says('False', 'missing: token')
  // As clients keep it: the annotation of --save-config holds the value too.
  kubectl('create', 'secret', 'generic', 'token', '-n', 'work', '--from-literal=value=of-a-secret', '--save-config')
  await says('True', 'every Secret that is named exists')
  kubectl('delete', 'secret', 'token', '-n', 'work')
  await says('False', 'missing: token')
  expect(seen.filter(({ metadata }) => metadata.name === 'token')).toHaveLength(2)
  expect([...new Set(seen.flatMap((object) => Object.keys(object)))].sort()).toEqual(['apiVersion', 'kind', 'metadata'])
  const ofSecrets = unusedRights('config/deploy/operator-watch-secrets', from).filter((right) =>
    right.endsWith('/secrets'),
  )
  // Its own certificate belongs to the webhooks, which do not run here.
  expect(ofSecrets).toEqual(['create /secrets', 'get /secrets'])
}, 120_000)
