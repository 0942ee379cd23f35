import { isNotFound, type KubeClient, KubeError, type ResourceType } from '../kube/index.ts'
import { API_VERSIONS, NEWEST_VERSION } from '../load/index.ts'

const type = (
  group: string,
  version: string,
  kind: string,
  plural: string = `${kind.toLowerCase()}s`,
  isNamespaced = true,
): ResourceType => ({ group, version, plural, kind, isNamespaced })

/** Group of the Gateway API, which is optional in a cluster. */
export const GATEWAY_GROUP = 'gateway.networking.k8s.io'

/** Kinds of the cluster itself that the operator reads or writes. */
export const CLUSTER_TYPES = {
  ConfigMap: type('', 'v1', 'ConfigMap'),
  Namespace: type('', 'v1', 'Namespace', 'namespaces', false),
  Pod: type('', 'v1', 'Pod'),
  Secret: type('', 'v1', 'Secret'),
  Service: type('', 'v1', 'Service'),
  ServiceAccount: type('', 'v1', 'ServiceAccount'),
  Deployment: type('apps', 'v1', 'Deployment'),
  HorizontalPodAutoscaler: type('autoscaling', 'v2', 'HorizontalPodAutoscaler'),
  PodDisruptionBudget: type('policy', 'v1', 'PodDisruptionBudget'),
  NetworkPolicy: type('networking.k8s.io', 'v1', 'NetworkPolicy', 'networkpolicies'),
  Ingress: type('networking.k8s.io', 'v1', 'Ingress', 'ingresses'),
  HTTPRoute: type(GATEWAY_GROUP, 'v1', 'HTTPRoute'),
  Event: type('events.k8s.io', 'v1', 'Event'),
  ValidatingWebhookConfiguration: type(
    'admissionregistration.k8s.io',
    'v1',
    'ValidatingWebhookConfiguration',
    'validatingwebhookconfigurations',
    false,
  ),
  MutatingWebhookConfiguration: type(
    'admissionregistration.k8s.io',
    'v1',
    'MutatingWebhookConfiguration',
    'mutatingwebhookconfigurations',
    false,
  ),
} as const

/** The supported kinds, in the operator's group (decisions §1). */
export const ownTypes = (apiGroup: string, version: string = NEWEST_VERSION) =>
  ({
    MCPExternalAuthConfig: type(apiGroup, version, 'MCPExternalAuthConfig'),
    MCPOIDCConfig: type(apiGroup, version, 'MCPOIDCConfig'),
    MCPTelemetryConfig: type(apiGroup, version, 'MCPTelemetryConfig'),
    MCPToolConfig: type(apiGroup, version, 'MCPToolConfig'),
    MCPRemoteProxy: type(apiGroup, version, 'MCPRemoteProxy', 'mcpremoteproxies'),
    MCPServer: type(apiGroup, version, 'MCPServer'),
    MCPServerEntry: type(apiGroup, version, 'MCPServerEntry', 'mcpserverentries'),
    VirtualMCPServer: type(apiGroup, version, 'VirtualMCPServer'),
  }) as const

export type OwnTypes = ReturnType<typeof ownTypes>

/**
 * The version for reading a group of another operator: the newest one that its definitions serve. The newest
 * supported one if there are no definitions, or they cannot be read. Throws `KubeError` if the API server does not
 * respond.
 */
export async function servedVersion(client: KubeClient, apiGroup: string, namespace?: string): Promise<string> {
  for (const version of API_VERSIONS.toReversed()) {
    try {
      await client.list(ownTypes(apiGroup, version).MCPExternalAuthConfig, { namespace, metadataOnly: true })
      return version
    } catch (error) {
      if (error instanceof KubeError && error.status === 403) return NEWEST_VERSION
      if (!isNotFound(error)) throw error
    }
  }
  return NEWEST_VERSION
}

/**
 * The `apiVersion` in documents for pods: the older version, because an existing pod may run a release that supports
 * no other.
 */
export const versionInFiles = (apiVersion: string): string => apiVersion.replace(/\/.*$/, `/${API_VERSIONS[0]}`)

/** Configuration shared by workloads besides credentials: callers, telemetry and tools. */
export const SHARED_KINDS = ['MCPOIDCConfig', 'MCPTelemetryConfig', 'MCPToolConfig'] as const
export type SharedKind = (typeof SHARED_KINDS)[number]
export const isShared = (kind: string): kind is SharedKind => SHARED_KINDS.some((one) => one === kind)
/** The kinds that workloads reference; deletion is blocked while they do. */
export const CONFIG_KINDS = ['MCPExternalAuthConfig', ...SHARED_KINDS] as const
export type ConfigKind = (typeof CONFIG_KINDS)[number]
/** The kinds that reference them and are counted in their status. */
export const REFERRING_KINDS = ['MCPRemoteProxy', 'MCPServer', 'MCPServerEntry', 'VirtualMCPServer'] as const
export type ReferringKind = (typeof REFERRING_KINDS)[number]
