import type { KubeObject, OwnerReference } from '../../kube/index.ts'
import type { Autoscaling, ResourceOverrides } from '../../resources/index.ts'
import type { Keys } from '../key-refs.ts'
import { instanceName, ownedName } from '../names.ts'
import type { PodSettings, ProxyPolicy } from '../pod-settings.ts'
import type { ServicePorts } from '../service-ports.ts'

/** The pod settings of an MCPRemoteProxy, as written. */
export interface RemoteProxyFields {
  /** Port that pods and Service listen on. */
  readonly port: number
  /** Absent: another controller (an autoscaler) decides. */
  readonly replicas: number | undefined
  readonly resources: object | undefined
  readonly podTemplateSpec: object | undefined
  readonly serviceAccountName: string | undefined
  /** AWS role of the generated service account. */
  readonly awsRoleArn: string | undefined
  /** Whether the Service sends one client to one pod. */
  readonly sessionAffinity: string
  /** Key for binding MCP sessions, shared by all pods. Absent: each pod generates one at start. */
  readonly sessionKey: { readonly name: string; readonly key: string } | undefined
  /** Undefined: no autoscaler. */
  readonly autoscaling: Autoscaling | undefined
  /** Additional settings of the generated objects. */
  readonly overrides: ResourceOverrides
  /** Allowed readers of metrics: peers of a NetworkPolicy. */
  readonly metricsFrom: readonly object[]
  /** Differences from the operator's settings. */
  readonly networkPolicy: Partial<ProxyPolicy>
  /** Additional egress rules of the NetworkPolicy. */
  readonly egress: readonly object[]
  readonly allowedOrigins: readonly string[]
  /** URL that clients connect to. */
  readonly externalUrl: string | undefined
  /** Gateways in front of the Service. */
  readonly gateway: { readonly parentRefs: readonly object[]; readonly hostnames?: readonly string[] } | undefined
  readonly ingress:
    | {
        readonly host: string
        readonly className?: string
        readonly tlsSecretName?: string
        readonly annotations?: Readonly<Record<string, string>>
      }
    | undefined
}

/** The pod settings of an MCPRemoteProxy of the cluster; its request settings are in `manifest`. */
export interface RemoteProxy extends RemoteProxyFields {
  readonly object: KubeObject
  readonly name: string
  readonly namespace: string
  readonly image: string
  /** The MCPRemoteProxy for the proxy process: without fields about pods. */
  readonly manifest: KubeObject
  /** Keys of Secrets that the pods mount, by Secret. */
  readonly secretKeys: Keys
  /** Keys of ConfigMaps with CA certificates, by ConfigMap; mounted beside the secrets. */
  readonly caBundleKeys: Keys
  /** The pods need a token of their service account (the cluster is an identity provider). */
  readonly needsClusterToken: boolean
  /** The pods use EKS pod identity, from its agent on the node. */
  readonly needsPodIdentity: boolean
  /** URLs that the pods connect to, for the NetworkPolicy. */
  readonly urls: readonly string[]
  /** Services of the cluster among the hosts of these URLs, by host. */
  readonly services: ReadonlyMap<string, ServicePorts>
  /** Ports of servers without a host in a URL: stores behind sentinels, discovered authorization servers. */
  readonly ports: readonly number[]
  /** Cluster-specific pod settings. */
  readonly pods: PodSettings
  /** The valid MCPExternalAuthConfig, MCPOIDCConfig, MCPTelemetryConfig and MCPToolConfig documents that it needs. */
  readonly documents: readonly KubeObject[]
}

export const PATHS = {
  config: '/etc/extauth',
  secrets: '/etc/extauth-secrets',
  /** Mount path of the service account; mounted only if needed. */
  cluster: '/var/run/secrets/kubernetes.io/serviceaccount',
} as const

/** URL by which the pods of the cluster reach the proxy. */
export const serviceUrl = ({ name, namespace, port }: Pick<RemoteProxy, 'name' | 'namespace' | 'port'>): string =>
  `http://${ownedName(name)}.${namespace}.svc.cluster.local:${port}`

export const ADMIN_PORT = 8081

/** Port for probes and Prometheus. */
export const adminPortOf = ({ port }: RemoteProxy): number => (port === ADMIN_PORT ? ADMIN_PORT + 1 : ADMIN_PORT)

/** Labels of all objects of a proxy; the first two select its pods and never change. */
export const selectorLabels = ({ name }: RemoteProxy): Record<string, string> => ({
  'app.kubernetes.io/name': 'mcp-extauth',
  'app.kubernetes.io/instance': instanceName(name),
})

const ownedLabels = (proxy: RemoteProxy): Record<string, string> => ({
  ...selectorLabels(proxy),
  'app.kubernetes.io/component': 'mcp-remote-proxy',
  'app.kubernetes.io/managed-by': 'mcp-extauth-operator',
})

/** The owner reference, for the garbage collector. */
export function ownerOf({ object }: RemoteProxy): OwnerReference {
  return {
    apiVersion: object.apiVersion,
    kind: object.kind,
    name: object.metadata.name,
    uid: object.metadata.uid ?? '',
    controller: true,
  }
}

/** Labels and annotations added by the user. */
interface More {
  readonly labels?: Readonly<Record<string, string>> | undefined
  readonly annotations?: Readonly<Record<string, string>> | undefined
}

/** An object owned by a proxy; added labels cannot replace the operator's. */
export const owned = (
  proxy: RemoteProxy,
  apiVersion: string,
  kind: string,
  fields: object,
  { labels, annotations }: More = {},
): KubeObject => ({
  apiVersion,
  kind,
  metadata: {
    name: ownedName(proxy.name),
    namespace: proxy.namespace,
    labels: { ...labels, ...ownedLabels(proxy) },
    ...(annotations === undefined ? {} : { annotations }),
    ownerReferences: [ownerOf(proxy)],
  },
  ...fields,
})
