import type { KubeObject, OwnerReference } from '../../kube/index.ts'
import type { Autoscaling, ResourceOverrides } from '../../resources/index.ts'
import type { Keys } from '../key-refs.ts'
import { instanceName, ownedName } from '../names.ts'
import type { PodSettings, ProxyPolicy } from '../pod-settings.ts'
import type { ServicePorts } from '../service-ports.ts'

/** What an MCPRemoteProxy says about its pods, as it says it. */
export interface RemoteProxyFields {
  /** Port that pods and Service listen on. */
  readonly port: number
  /** Absent: somebody else (an autoscaler) decides. */
  readonly replicas: number | undefined
  readonly resources: object | undefined
  readonly podTemplateSpec: object | undefined
  readonly serviceAccountName: string | undefined
  /** Role of AWS that the account names which is made. */
  readonly awsRoleArn: string | undefined
  /** Whether the Service sends one client to one pod. */
  readonly sessionAffinity: string
  /** Key that all pods bind MCP sessions with. Absent: each makes one at start. */
  readonly sessionKey: { readonly name: string; readonly key: string } | undefined
  /** Undefined: the operator makes no autoscaler. */
  readonly autoscaling: Autoscaling | undefined
  /** More of what is made. */
  readonly overrides: ResourceOverrides
  /** Who may read metrics: peers of a NetworkPolicy. */
  readonly metricsFrom: readonly object[]
  /** What differs from the settings of the operator. */
  readonly networkPolicy: Partial<ProxyPolicy>
  /** More egress rules of the NetworkPolicy. */
  readonly egress: readonly object[]
  readonly allowedOrigins: readonly string[]
  /** URL that clients connect to. */
  readonly externalUrl: string | undefined
  /** Gateways that lead to the Service. */
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

/** What an MCPRemoteProxy of the cluster says about the pods that serve it; what it says about requests is in `manifest`. */
export interface RemoteProxy extends RemoteProxyFields {
  readonly object: KubeObject
  readonly name: string
  readonly namespace: string
  readonly image: string
  /** The MCPRemoteProxy as the proxy reads it: without fields that are about pods. */
  readonly manifest: KubeObject
  /** Keys of Secrets that the pods mount, by Secret. */
  readonly secretKeys: Keys
  /** Keys of ConfigMaps that hold CA certificates, by ConfigMap; found beside the secrets. */
  readonly caBundleKeys: Keys
  /** The pods need a token of their service account (a provider that is the cluster itself). */
  readonly needsClusterToken: boolean
  /** The pods take the AWS identity that EKS gives them, from its agent on the node. */
  readonly needsPodIdentity: boolean
  /** URLs that the pods connect to, for the NetworkPolicy. */
  readonly urls: readonly string[]
  /** Services of the cluster among the hosts of these URLs, by host. */
  readonly services: ReadonlyMap<string, ServicePorts>
  /** Ports of stores whose host no URL names. */
  readonly storePorts: readonly number[]
  /** What its pods have of the cluster. */
  readonly pods: PodSettings
  /** MCPExternalAuthConfig, MCPOIDCConfig, MCPTelemetryConfig and MCPToolConfig documents that it needs, valid ones. */
  readonly documents: readonly KubeObject[]
}

export const PATHS = {
  config: '/etc/extauth',
  secrets: '/etc/extauth-secrets',
  /** Where a kubelet puts what a pod is to the API server; mounted only where it is needed. */
  cluster: '/var/run/secrets/kubernetes.io/serviceaccount',
} as const

/** URL by which the pods of the cluster reach the proxy. */
export const serviceUrl = ({ name, namespace, port }: Pick<RemoteProxy, 'name' | 'namespace' | 'port'>): string =>
  `http://${ownedName(name)}.${namespace}.svc.cluster.local:${port}`

export const ADMIN_PORT = 8081

/** Where probes and Prometheus ask the pods of a proxy. */
export const adminPortOf = ({ port }: RemoteProxy): number => (port === ADMIN_PORT ? ADMIN_PORT + 1 : ADMIN_PORT)

/** Labels of everything that belongs to a proxy; the first two select its pods and never change. */
export const selectorLabels = ({ name }: RemoteProxy): Record<string, string> => ({
  'app.kubernetes.io/name': 'mcp-extauth',
  'app.kubernetes.io/instance': instanceName(name),
})

const ownedLabels = (proxy: RemoteProxy): Record<string, string> => ({
  ...selectorLabels(proxy),
  'app.kubernetes.io/component': 'mcp-remote-proxy',
  'app.kubernetes.io/managed-by': 'mcp-extauth-operator',
})

/** What makes the garbage collector remove it with the proxy. */
export function ownerOf({ object }: RemoteProxy): OwnerReference {
  return {
    apiVersion: object.apiVersion,
    kind: object.kind,
    name: object.metadata.name,
    uid: object.metadata.uid ?? '',
    controller: true,
  }
}

/** Labels and annotations that somebody adds. */
interface More {
  readonly labels?: Readonly<Record<string, string>> | undefined
  readonly annotations?: Readonly<Record<string, string>> | undefined
}

/** An object that belongs to a proxy; of labels that are added ours stay. */
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
