import { execFileSync } from 'node:child_process'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { KubeConnection, KubeObject } from '../../src/kube/index.ts'
import { CLUSTER_TYPES, NAMES, type Operator, podKeys } from '../../src/operator/index.ts'
import { type AuditEvent, requestsOf } from './support/audit-log.ts'
import { type ControlPlane, eventually, startControlPlane } from './support/control-plane.ts'
import {
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

test('the rights that it ships with are enough for all that it does, and none is left over', async () => {
  const { client } = admin
  await client.apply(CLUSTER_TYPES.Namespace, namespaceObject('work'))
  await client.apply(types.MCPExternalAuthConfig, config('c', 'work'))
  const spec = {
    remoteUrl: 'https://api.example.com/mcp',
    externalAuthConfigRef: { name: 'c' },
    resourceUrl: 'https://mcp.example.com',
    oidcConfig: { type: 'inline', inline: { issuer: 'https://idp.example.com', audience: 'mcp' } },
    replicas: 2,
  }
  await client.apply(types.MCPRemoteProxy, workload('MCPRemoteProxy', 'p', spec, 'work'))
  await eventually(() => client.get(CLUSTER_TYPES.PodDisruptionBudget, 'work', 'p'))
  await eventually(async () => {
    const pods = await client.list(CLUSTER_TYPES.Pod, {
      namespace: 'work',
      labelSelector: 'app.kubernetes.io/instance=p',
    })
    expect(pods.items.length).toBeGreaterThan(0)
    expect(pods.items.every(({ metadata }) => metadata.annotations?.['extauth.dev/config-hash'] !== undefined)).toBe(
      true,
    )
  })
  const keys = podKeys(GROUP)
  const annotations = { [keys.externalAuth]: 'c', [keys.targetPort]: '3000', [keys.callers]: 'callers' }
  const pod: KubeObject = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'injected', namespace: 'work', labels: { [keys.inject]: 'true' }, annotations },
    spec: { containers: [{ name: 'x', image: 'x' }] },
  }
  await eventually(() => client.create(CLUSTER_TYPES.Pod, pod))
  await eventually(() => client.get(CLUSTER_TYPES.ConfigMap, 'work', 'extauth-inject-c'))
  await client.apply(
    types.MCPRemoteProxy,
    workload('MCPRemoteProxy', 'p', { ...spec, replicas: 1, serviceAccountName: 'own' }, 'work'),
  )
  await eventually(() =>
    expect(client.get(CLUSTER_TYPES.ServiceAccount, 'work', 'p')).rejects.toMatchObject({ status: 404 }),
  )
  await eventually(() =>
    expect(client.get(CLUSTER_TYPES.PodDisruptionBudget, 'work', 'p')).rejects.toMatchObject({ status: 404 }),
  )

  // The lease is renewed every two seconds.
  await eventually(() =>
    expect(used().some(({ verb, objectRef }) => verb === 'update' && objectRef?.resource === 'leases')).toBe(true),
  )
  const events = used()
  const refused = events.filter(({ responseStatus }) => responseStatus?.code === 403)
  expect(refused.map(({ verb, objectRef }) => `${verb} ${objectRef?.resource}`)).toEqual([])
  const done = new Set(
    events.map(({ verb, objectRef }) => {
      const resource = [objectRef?.resource, objectRef?.subresource].filter((part) => part !== undefined).join('/')
      return `${verb} ${objectRef?.apiGroup ?? ''}/${resource}`
    }),
  )
  const granted = kustomize('config/deploy/operator')
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
    /^create \/(configmaps|services|serviceaccounts)$|^create (apps|networking\.k8s\.io|policy)\/|^update \/secrets$/
  expect(granted.filter((right) => !done.has(right) && !inside.test(right))).toEqual([])
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

test('with one namespace, Roles in it are enough, and others are not looked at', async () => {
  await operator.close()
  const { client } = admin
  await client.apply(CLUSTER_TYPES.Namespace, namespaceObject('mcp'))
  kubectl('delete', 'clusterroles,clusterrolebindings', '-l', 'app.kubernetes.io/name=mcp-extauth')
  kubectl('apply', '-k', path.join(root, 'config/deploy/operator-namespaced'))
  // The Service that they name leads nowhere here.
  kubectl('delete', 'validatingwebhookconfigurations,mutatingwebhookconfigurations', NAMES.webhooks)
  const from = used().length
  operator = await runOperator(asOperator.client, { ownNamespace: SYSTEM, namespace: 'mcp' })
  await client.apply(types.MCPExternalAuthConfig, config('elsewhere', 'work'))
  await client.apply(types.MCPExternalAuthConfig, config('c', 'mcp'))
  const spec = {
    remoteUrl: 'https://api.example.com/mcp',
    externalAuthConfigRef: { name: 'c' },
    resourceUrl: 'https://mcp.example.com',
    oidcConfig: { type: 'inline', inline: { issuer: 'https://idp.example.com', audience: 'mcp' } },
  }
  await client.apply(types.MCPRemoteProxy, workload('MCPRemoteProxy', 'p', spec, 'mcp'))
  await eventually(() => client.get(CLUSTER_TYPES.Deployment, 'mcp', 'p'))
  await eventually(async () =>
    expect((await client.get(types.MCPExternalAuthConfig, 'mcp', 'c')).status).toMatchObject({
      referencingWorkloads: [{ kind: 'MCPRemoteProxy', name: 'p' }],
    }),
  )
  await operator.idle()
  const events = used().slice(from)
  expect(events.length).toBeGreaterThan(10)
  expect(events.filter(({ responseStatus }) => responseStatus?.code === 403)).toEqual([])
  expect((await client.get(types.MCPExternalAuthConfig, 'work', 'elsewhere')).status).toEqual({
    observedGeneration: -1,
  })
}, 120_000)

test('kubectl shows type, validity, readiness, references and age of a config', () => {
  const [head = '', ...rows] = kubectl('get', 'extauth', '-n', 'mcp').trim().split('\n')
  expect(head.split(/\s{2,}/)).toEqual(['NAME', 'TYPE', 'VALID', 'READY', 'REFERENCES', 'AGE'])
  expect(rows.map((row) => row.split(/\s+/).slice(0, 5))).toEqual([['c', 'bearerToken', 'True', 'True', 'p']])
  expect(kubectl('get', 'mcp', '-n', 'mcp')).toContain('mcpremoteproxy.extauth.dev/p')
})
