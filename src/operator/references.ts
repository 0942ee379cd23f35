import type { KubeObject } from '../kube/index.ts'
import type { ConfigKind, ReferringKind } from './kinds.ts'

/** Names of pod annotations and labels, in the operator's group. */
export const podKeys = (apiGroup: string) => ({
  /** Label that requests injection. */
  inject: `${apiGroup}/inject`,
  externalAuth: `${apiGroup}/external-auth`,
  targetPort: `${apiGroup}/target-port`,
  listenPort: `${apiGroup}/listen-port`,
  callers: `${apiGroup}/callers`,
  /** Set by injection: hash of the injected content. */
  injected: `${apiGroup}/injected`,
})

export type PodKeys = ReturnType<typeof podKeys>

type Json = Readonly<Record<string, unknown>>

const member = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json)[name] : undefined

const nameIn = (reference: unknown): string[] => {
  const name = typeof reference === 'string' ? reference : member(reference, 'name')
  return typeof name === 'string' && name !== '' ? [name] : []
}

const members = (value: unknown): unknown[] =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.values(value) : []

/**
 * Names of the MCPExternalAuthConfig objects that a workload references in its own namespace, each once
 * (specification, Referenced by; kubernetes.md §2, References).
 */
export function referencedConfigs(kind: ReferringKind, object: KubeObject): string[] {
  const spec = object['spec']
  const direct = nameIn(member(spec, 'externalAuthConfigRef'))
  switch (kind) {
    case 'MCPServerEntry':
      return direct
    case 'MCPServer':
    case 'MCPRemoteProxy':
      return unique([...direct, ...nameIn(member(spec, 'authServerRef'))])
    default: {
      const outgoing = member(spec, 'outgoingAuth')
      const discovered = member(object['status'], 'discoveredBackends')
      return unique([
        ...nameIn(member(member(outgoing, 'default'), 'externalAuthConfigRef')),
        ...members(member(outgoing, 'backends')).flatMap((one) => nameIn(member(one, 'externalAuthConfigRef'))),
        ...(Array.isArray(discovered) ? discovered : []).flatMap((one) => nameIn(member(one, 'authConfigRef'))),
        ...nameIn(member(spec, 'authServerRef')),
      ])
    }
  }
}

/** Name of the MCPOIDCConfig for the callers of a workload; none or one. */
function referencedOidcConfigs(kind: ReferringKind, object: KubeObject): string[] {
  const { spec } = object
  const section = kind === 'VirtualMCPServer' ? member(spec, 'incomingAuth') : spec
  return nameIn(member(section, 'oidcConfigRef'))
}

/** Name of the MCPTelemetryConfig of a workload; none or one. */
const referencedTelemetryConfigs = (kind: ReferringKind, { spec }: KubeObject): string[] =>
  kind === 'MCPServerEntry' ? [] : nameIn(member(spec, 'telemetryConfigRef'))

/** Name of the MCPToolConfig of a workload; none or one. */
const referencedToolConfigs = (kind: ReferringKind, { spec }: KubeObject): string[] =>
  kind === 'VirtualMCPServer' ? [] : nameIn(member(spec, 'toolConfigRef'))

/** All references of a workload. */
export const referencesOf = (
  kind: ReferringKind,
  object: KubeObject,
): { readonly kind: ConfigKind; readonly name: string }[] => [
  ...referencedConfigs(kind, object).map((name) => ({ kind: 'MCPExternalAuthConfig' as const, name })),
  ...referencedOidcConfigs(kind, object).map((name) => ({ kind: 'MCPOIDCConfig' as const, name })),
  ...referencedTelemetryConfigs(kind, object).map((name) => ({ kind: 'MCPTelemetryConfig' as const, name })),
  ...referencedToolConfigs(kind, object).map((name) => ({ kind: 'MCPToolConfig' as const, name })),
]

/** The config that a pod was injected for, or requests. */
export function injectedConfig(pod: KubeObject, keys: PodKeys): string | undefined {
  const { labels, annotations } = pod.metadata
  if (labels?.[keys.inject] !== 'true') return undefined
  const name = annotations?.[keys.externalAuth]
  return name === undefined || name === '' ? undefined : name
}

/** Whether a pod has terminated for good. */
export function hasEnded({ status }: KubeObject): boolean {
  const phase = member(status, 'phase')
  return phase === 'Succeeded' || phase === 'Failed'
}

const unique = (names: readonly string[]): string[] => [...new Set(names)]
