import { readFileSync } from 'node:fs'
import { parse, parseAllDocuments } from 'yaml'
import { execFileSync } from 'node:child_process'
import path from 'node:path'
import { freePort } from '../../../lab/free-port.ts'
import { openMetrics } from '../../../src/report/metrics.ts'
import {
  type KubeClient,
  type KubeConnection,
  type KubeObject,
  openKubeConnection,
  readKubeconfig,
  type ResourceType,
} from '../../../src/kube/index.ts'
import {
  CLUSTER_TYPES,
  mutatingConfiguration,
  NAMES,
  type Operator,
  type OperatorOptions,
  ownTypes,
  podKeys,
  startOperator,
  validatingConfiguration,
} from '../../../src/operator/index.ts'
import { CRD_KINDS, customResourceDefinition } from '../../../src/load/publish/index.ts'
import { type ControlPlane, eventually } from './control-plane.ts'

export const GROUP = 'extauth.dev'
export const types = ownTypes(GROUP)
export const root = path.join(import.meta.dirname, '../../..')
export const silent = { debug() {}, info() {}, warn() {}, error() {} }
const CRDS: ResourceType = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
  kind: 'CustomResourceDefinition',
  isNamespaced: false,
}

/** A connection as the administrator of the test cluster. */
export function connect(plane: ControlPlane, token?: string): KubeConnection {
  const config = parse(readFileSync(plane.kubeconfigPath, 'utf8')) as { users: { user: { token: string } }[] }
  if (token !== undefined && config.users[0] !== undefined) config.users[0].user.token = token
  return openKubeConnection({
    settings: readKubeconfig(config, plane.kubeconfigPath),
    fieldManager: 'extauth-operator',
    userAgent: 'extauth-test',
    log: silent,
  })
}

/** All five definitions, served. */
export async function installDefinitions(client: KubeClient): Promise<void> {
  // A server that has just begun may take longer than a request may.
  const apply = (kind: (typeof CRD_KINDS)[number]) =>
    eventually(() => client.apply(CRDS, customResourceDefinition(GROUP, kind) as unknown as KubeObject))
  await Promise.all(CRD_KINDS.map(apply))
  await eventually(async () => {
    for (const kind of CRD_KINDS) await client.list(types[kind], {})
  })
}

export const namespaceObject = (name: string, labels: Record<string, string> = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name, labels },
})

/** The ConfigMap `callers` of an injected pod: all callers are accepted. */
export const anonymousCallers = (namespace: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'callers', namespace },
  data: { 'callers.yaml': 'mode: anonymous' },
})

/** A config that sends a bearer from Secret `token`. */
export const config = (name: string, namespace = 'default', spec: object = BEARER): KubeObject => ({
  apiVersion: `${GROUP}/v1beta1`,
  kind: 'MCPExternalAuthConfig',
  metadata: { name, namespace },
  spec,
})
export const BEARER = { type: 'bearerToken', bearerToken: { tokenSecretRef: { name: 'token', key: 'value' } } }

export const workload = (kind: string, name: string, spec: object, namespace = 'default'): KubeObject => ({
  apiVersion: `${GROUP}/v1beta1`,
  kind,
  metadata: { name, namespace },
  spec,
})

/** An operator in this process; `webhook: true` serves on a free loopback port and installs both configurations. */
export async function runOperator(
  client: KubeClient,
  options: Partial<Omit<OperatorOptions, 'webhook'>> & {
    readonly webhook?: boolean
    /** Client that installs the webhook configurations. Default: the operator's. */
    readonly installer?: KubeClient
  } = {},
): Promise<Operator> {
  const { webhook = false, installer = client, ...more } = options
  const ownNamespace = more.ownNamespace ?? 'default'
  const port = webhook ? await freePort() : 0
  const operator = startOperator({
    client,
    apiGroup: GROUP,
    ownNamespace: 'default',
    identity: `test-${Math.random().toString(36).slice(2)}`,
    image: 'mcp-extauth:test',
    watchSecrets: false,
    restrictPodTemplate: false,
    secretsByLabel: false,
    ownsKinds: true,
    writesStatus: true,
    webhook: webhook ? { address: `127.0.0.1:${port}`, names: ['127.0.0.1'], leaveMs: 0 } : undefined,
    onLost: () => {},
    clock: { now: () => Date.now() },
    log: silent,
    metrics: openMetrics(),
    ...more,
  })
  await operator.synced
  await eventually(() => {
    if (!operator.isLeader) throw new Error('not the leader yet')
  }, 40_000)
  if (!webhook) return operator
  await eventually(() => {
    if (operator.webhookPort === undefined) throw new Error('webhooks are not served yet')
  })
  await installWebhooks(installer, ownNamespace, port)
  return operator
}

/** Both webhook configurations, once there is a certificate; asked at a port on loopback. */
export async function installWebhooks(installer: KubeClient, ownNamespace: string, port: number): Promise<void> {
  const secret = await eventually(() => installer.get(CLUSTER_TYPES.Secret, ownNamespace, NAMES.secret))
  const caBundle = Buffer.from((secret.data as Record<string, string>)['ca.crt'] ?? '', 'base64').toString('utf8')
  const shared = {
    name: NAMES.webhooks,
    types,
    keys: podKeys(GROUP),
    target: { url: `https://127.0.0.1:${port}` },
    caBundle,
    ownNamespace: 'extauth-system',
  }
  // Those of the base name a Service, which nothing routes to here.
  await installer.remove(CLUSTER_TYPES.ValidatingWebhookConfiguration, undefined, NAMES.webhooks)
  await installer.remove(CLUSTER_TYPES.MutatingWebhookConfiguration, undefined, NAMES.webhooks)
  await installer.apply(CLUSTER_TYPES.ValidatingWebhookConfiguration, validatingConfiguration(shared))
  await installer.apply(CLUSTER_TYPES.MutatingWebhookConfiguration, mutatingConfiguration(shared))
}

const MANIFESTS_BYTES = 64 * 1024 * 1024

/** Documents of the Kustomize base. */
export function kustomize(folder: string): KubeObject[] {
  const text = execFileSync('kubectl', ['kustomize', path.join(root, folder)], {
    encoding: 'utf8',
    maxBuffer: MANIFESTS_BYTES,
  })
  return parseAllDocuments(text).map((document) => document.toJS() as KubeObject)
}
