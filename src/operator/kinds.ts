import type { ResourceType } from '../kube/index.ts'

const type = (
  group: string,
  version: string,
  kind: string,
  plural: string = `${kind.toLowerCase()}s`,
  isNamespaced = true,
): ResourceType => ({ group, version, plural, kind, isNamespaced })

/** Kinds of the cluster itself that the operator reads or writes. */
export const CLUSTER_TYPES = {
  ConfigMap: type('', 'v1', 'ConfigMap'),
  Namespace: type('', 'v1', 'Namespace', 'namespaces', false),
  Pod: type('', 'v1', 'Pod'),
  Secret: type('', 'v1', 'Secret'),
  Service: type('', 'v1', 'Service'),
  ServiceAccount: type('', 'v1', 'ServiceAccount'),
  Deployment: type('apps', 'v1', 'Deployment'),
  PodDisruptionBudget: type('policy', 'v1', 'PodDisruptionBudget'),
  NetworkPolicy: type('networking.k8s.io', 'v1', 'NetworkPolicy', 'networkpolicies'),
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

/** Our kinds, in the group that the operator was told (decisions §1). */
export const ownTypes = (apiGroup: string) =>
  ({
    MCPExternalAuthConfig: type(apiGroup, 'v1alpha1', 'MCPExternalAuthConfig'),
    MCPRemoteProxy: type(apiGroup, 'v1alpha1', 'MCPRemoteProxy', 'mcpremoteproxies'),
    MCPServer: type(apiGroup, 'v1alpha1', 'MCPServer'),
    MCPServerEntry: type(apiGroup, 'v1alpha1', 'MCPServerEntry', 'mcpserverentries'),
    VirtualMCPServer: type(apiGroup, 'v1alpha1', 'VirtualMCPServer'),
  }) as const

export type OwnTypes = ReturnType<typeof ownTypes>
/** The kinds that refer to an MCPExternalAuthConfig and are counted in its status. */
export const REFERRING_KINDS = ['MCPRemoteProxy', 'MCPServer', 'MCPServerEntry', 'VirtualMCPServer'] as const
export type ReferringKind = (typeof REFERRING_KINDS)[number]
