import {
  createInformer,
  type Informer,
  type KubeClient,
  type KubeObject,
  type ResourceType,
  type Selection,
} from '../kube/index.ts'
import type { Log } from '../core/index.ts'
import {
  CLUSTER_TYPES,
  type OwnTypes,
  REFERRING_KINDS,
  type ReferringKind,
  SHARED_KINDS,
  type SharedKind,
} from './kinds.ts'
import { OWNED_TYPES } from './remote-proxy/objects.ts'
import type { PodKeys } from './references.ts'
import { type ReportingPod, reportingPod } from './remote-proxy/pod-reports.ts'

export type Change = (type: ResourceType, before: KubeObject | undefined, after: KubeObject | undefined) => void

export interface ObservedOptions {
  readonly client: KubeClient
  readonly types: OwnTypes
  readonly keys: PodKeys
  /** Absent: all namespaces. */
  readonly namespace: string | undefined
  readonly watchSecrets: boolean
  /**
   * False beside another operator of the group: there are no finalizers for a terminating namespace and no owned
   * proxies; kinds that its version lacks count as empty.
   */
  readonly ownsKinds: boolean
  /** The pods of proxies are watched. */
  readonly asksPods: boolean
  readonly onChange: Change
  readonly onRestart: (kind: string, reason: string) => void
  readonly log: Log
}

/** Label of everything that the operator owns. */
const MANAGED_BY = 'app.kubernetes.io/managed-by'
const OPERATOR = 'mcp-extauth-operator'
const OWNED_SELECTOR = `${MANAGED_BY}=${OPERATOR}`
const isManaged = ({ metadata }: KubeObject): boolean => metadata.labels?.[MANAGED_BY] === OPERATOR

const INSTANCE = 'app.kubernetes.io/instance'
const PROXY_PODS = 'app.kubernetes.io/name=mcp-extauth,app.kubernetes.io/component=mcp-remote-proxy'

/** Fields of proxy pods that are kept. */
const trimProxyPod = (object: KubeObject): KubeObject => {
  const { name, namespace, uid, resourceVersion, deletionTimestamp, labels } = object.metadata
  const kept = { name, namespace, uid, resourceVersion, deletionTimestamp, labels: { [INSTANCE]: labels?.[INSTANCE] } }
  const { hostNetwork, containers = [] } = (object.spec ?? {}) as {
    hostNetwork?: boolean
    containers?: { ports?: object[] }[]
  }
  const { podIP, conditions = [] } = (object.status ?? {}) as { podIP?: string; conditions?: { type: string }[] }
  return {
    apiVersion: object.apiVersion,
    kind: object.kind,
    metadata: kept as KubeObject['metadata'],
    spec: { hostNetwork, containers: containers.map(({ ports }) => ({ ports })) },
    status: { podIP, conditions: conditions.filter(({ type }) => type === 'Ready') },
  }
}

/** Services of other owners are reduced to their ports. */
const trimService = (object: KubeObject, before: KubeObject | undefined): KubeObject => {
  if (isManaged(object)) return trim(object, before)
  const { name, namespace, uid, resourceVersion } = object.metadata
  const { type, clusterIP, ports } = (object.spec ?? {}) as Readonly<Record<string, unknown>>
  const metadata = { name, namespace, uid, resourceVersion } as KubeObject['metadata']
  return { apiVersion: object.apiVersion, kind: object.kind, metadata, spec: { type, clusterIP, ports } }
}

/** Local caches of all objects that decisions depend on. */
export interface Observed {
  config(namespace: string, name: string): KubeObject | undefined
  configs(): readonly KubeObject[]
  shared(kind: SharedKind, namespace: string, name: string): KubeObject | undefined
  allShared(kind: SharedKind): readonly KubeObject[]
  workload(kind: ReferringKind, namespace: string, name: string): KubeObject | undefined
  workloads(kind: ReferringKind): readonly KubeObject[]
  /** Pods with the injection label. */
  pod(namespace: string, name: string): KubeObject | undefined
  /** Pods of all proxies; empty if they are not watched. */
  proxyPods(): readonly ReportingPod[]
  owned(type: ResourceType, namespace: string, name: string): KubeObject | undefined
  /** Any Service of the cluster, with its ports. */
  service(namespace: string, name: string): KubeObject | undefined
  /** Records the result of a write before its watch event arrives. */
  learn(type: ResourceType, object: KubeObject): void
  isTerminating(namespace: string): boolean
  /** Image of the proxies in a namespace, from its annotation; undefined without one. */
  namespaceImage(namespace: string): string | undefined
  /** Undefined where Secrets are not watched. */
  secret: ((namespace: string, name: string) => 'missing' | 'unlabelled' | 'usable') | undefined
  readonly synced: Promise<void>
  /** The watched kinds. */
  readonly kinds: readonly string[]
  /** Collections that are not synced yet, for readiness; empty when all are. */
  problems(): readonly string[]
  close(): void
}

/** Removes large unused fields; keeps the identity of an unchanged spec, so that it is validated once. */
const trim = (object: KubeObject, before: KubeObject | undefined): KubeObject => {
  const { managedFields: _fields, ...metadata } = object.metadata
  return { ...object, metadata, ...(hasSameSpec(object, before) ? { spec: before?.spec } : {}) }
}

/** Label of Secrets that may be referenced with `--secrets-by-label` (kubernetes.md). */
export const USABLE_LABEL = 'extauth.dev/usable'

/** Keeps only the existence and label of a Secret: `kubectl apply` stores the values in an annotation. */
export const onlyThatItIs = ({ apiVersion, kind, metadata }: KubeObject): KubeObject => {
  const { name, namespace, uid, resourceVersion } = metadata
  const labels = isUsable({ metadata }) ? { labels: { [USABLE_LABEL]: 'true' } } : {}
  return { apiVersion, kind, metadata: { name, namespace, uid, resourceVersion, ...labels } as KubeObject['metadata'] }
}

/** Annotation of a namespace: the image of its proxies, for a separate rollout. */
export const IMAGE_ANNOTATION = 'extauth.dev/proxy-image'

/** The image in the annotation of a namespace. */
export const imageIn = (namespace: KubeObject | undefined): string | undefined =>
  namespace?.metadata.annotations?.[IMAGE_ANNOTATION]

/** Whether a Secret has the label required by `--secrets-by-label`. */
export const isUsable = ({ metadata }: Pick<KubeObject, 'metadata'>): boolean =>
  metadata.labels?.[USABLE_LABEL] === 'true'

/** Whether only status or metadata changed: the generation counts changes of the spec. */
export const hasSameSpec = ({ metadata }: KubeObject, before: KubeObject | undefined): boolean =>
  metadata.generation !== undefined &&
  metadata.generation === before?.metadata.generation &&
  metadata.uid === before.metadata.uid

export function observe(options: ObservedOptions): Observed {
  const { client, types, keys, namespace, ownsKinds, onChange, onRestart, log } = options
  // Definitions of the previous release lack these, and clusters without gateways their routes.
  const added = SHARED_KINDS.map((kind) => types[kind])
  const mayBeMissing: ReadonlySet<ResourceType> = new Set([
    ...(ownsKinds ? added : Object.values(types)),
    CLUSTER_TYPES.HTTPRoute,
  ])
  const follow = (type: ResourceType, selection: Selection = {}, kept = trim): Informer =>
    createInformer({
      client,
      type,
      selection: { ...selection, ...(type.isNamespaced ? { namespace } : {}) },
      trim: kept,
      mayBeMissing: mayBeMissing.has(type),
      onChange: (_key, before, after) => onChange(type, before, after),
      onRestart: (reason) => onRestart(type.kind, reason),
      log,
    })
  const configs = follow(types.MCPExternalAuthConfig)
  const shared = new Map<SharedKind, Informer>(SHARED_KINDS.map((kind) => [kind, follow(types[kind])]))
  const workloads = new Map<ReferringKind, Informer>(REFERRING_KINDS.map((kind) => [kind, follow(types[kind])]))
  const proxyPods =
    ownsKinds && options.asksPods ? follow(CLUSTER_TYPES.Pod, { labelSelector: PROXY_PODS }, trimProxyPod) : undefined
  const pods = follow(CLUSTER_TYPES.Pod, { labelSelector: `${keys.inject}=true` })
  // Injection needs a ConfigMap in any group.
  const ownedTypes = ownsKinds ? OWNED_TYPES : [CLUSTER_TYPES.ConfigMap]
  const owned = new Map(
    ownedTypes.map((type) => [
      type.kind,
      // NetworkPolicies need the target ports of every Service in a URL.
      type === CLUSTER_TYPES.Service ? follow(type, {}, trimService) : follow(type, { labelSelector: OWNED_SELECTOR }),
    ]),
  )
  // A Role cannot grant namespaces: an operator limited to one learns about it only from its objects.
  const namespaces =
    ownsKinds && namespace === undefined ? follow(CLUSTER_TYPES.Namespace, { metadataOnly: true }) : undefined
  const secrets = options.watchSecrets ? follow(CLUSTER_TYPES.Secret, { metadataOnly: true }, onlyThatItIs) : undefined
  const all = [
    configs,
    ...shared.values(),
    ...workloads.values(),
    proxyPods,
    pods,
    ...owned.values(),
    namespaces,
    secrets,
  ].filter((informer): informer is Informer => informer !== undefined)
  const written = new Map(all.map((informer) => [informer.type.kind, informer]))
  return {
    config: (space, name) => configs.get(`${space}/${name}`),
    configs: () => configs.list(),
    shared: (kind, space, name) => shared.get(kind)?.get(`${space}/${name}`),
    allShared: (kind) => shared.get(kind)?.list() ?? [],
    workload: (kind, space, name) => workloads.get(kind)?.get(`${space}/${name}`),
    workloads: (kind) => workloads.get(kind)?.list() ?? [],
    pod: (space, name) => pods.get(`${space}/${name}`),
    proxyPods: () => (proxyPods?.list() ?? []).map((pod) => reportingPod(pod, pod.metadata.labels?.[INSTANCE] ?? '')),
    owned(type, space, name) {
      const found = owned.get(type.kind)?.get(`${space}/${name}`)
      return found === undefined || !isManaged(found) ? undefined : found
    },
    service: (space, name) => owned.get(CLUSTER_TYPES.Service.kind)?.get(`${space}/${name}`),
    learn: (type, object) => written.get(type.kind)?.learn(object),
    namespaceImage: (name) => imageIn(namespaces?.get(name)),
    isTerminating: (name) => namespaces?.get(name)?.metadata.deletionTimestamp !== undefined,
    secret:
      secrets === undefined
        ? undefined
        : (space, name) => {
            const found = secrets.get(`${space}/${name}`)
            return found === undefined ? 'missing' : isUsable(found) ? 'usable' : 'unlabelled'
          },
    kinds: [...new Set(all.map(({ type }) => type.kind))],
    synced: allOf(all.map((informer) => informer.synced)),
    problems: () =>
      all.flatMap((informer) => {
        if (informer.problem !== undefined) return [`${informer.type.kind}: ${informer.problem}`]
        return informer.isSynced ? [] : [`${informer.type.kind}: not read yet`]
      }),
    close: () => {
      for (const informer of all) informer.close()
    },
  }
}

async function allOf(promises: readonly Promise<void>[]): Promise<void> {
  await Promise.all(promises)
}
