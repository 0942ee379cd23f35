import type { Metadata } from '../../fields/index.ts'
import {
  asksFor,
  type CaBundleRef,
  type Connections,
  type EmbeddedAuthServer,
  fieldsBelow,
  type InlineTelemetry,
  type ParsedWorkload,
  type RemoteSpec,
  type RouteSettings,
  type TelemetryConfigRef,
  type VirtualServerSpec,
  type VirtualServerStatus,
  WORKLOAD_FIELDS,
  type WorkloadKind,
} from '../../resources/index.ts'
import { type Backend, discoveredBackends, written, type WrittenReference } from './backends.ts'
import { manifestCallers, type ManifestCallers } from './manifest-callers.ts'

/** The fields of a workload that are read. */
export interface Workload {
  readonly kind: WorkloadKind
  readonly metadata: Metadata
  /** Its backends; empty for an MCPServer, whose references alone are checked. */
  readonly backends: readonly Backend[]
  readonly port: number | undefined
  readonly resourceUrl: string | undefined
  /** The URL for clients: the resource of a route that names none. */
  readonly externalUrl: string | undefined
  readonly authServer: WrittenReference | undefined
  readonly callers: ManifestCallers | undefined
  /** Route settings that differ from the defaults. */
  readonly settings: RouteSettings
  /** CA certificates of its backends. */
  readonly caBundle: CaBundleRef | undefined
  /** The trace receiver: an MCPTelemetryConfig, or inline settings. */
  readonly telemetry:
    | { readonly reference: TelemetryConfigRef }
    | { readonly inline: InlineTelemetry; readonly reference?: undefined }
    | undefined
  /** Asks for an audit trail on standard output. */
  readonly isAudited: boolean
  /** Accounts of callers. */
  readonly connections: Connections | undefined
  /** The MCPToolConfig with the tools that callers may use. */
  readonly tools: WrittenReference | undefined
  /** Unsupported restrictions, rejected when it becomes routes. */
  readonly refused: readonly { readonly path: readonly string[]; readonly details: string }[]
  /** The authorization server embedded in a VirtualMCPServer. */
  readonly ownAuthServer: EmbeddedAuthServer | undefined
}

/** The fields of a parsed workload of any kind. */
export function toWorkload(kind: WorkloadKind, parsed: ParsedWorkload): Workload {
  const { metadata: named } = parsed
  if (kind === 'VirtualMCPServer') {
    // The schema of this kind guarantees it.
    const spec = parsed.spec as VirtualServerSpec
    const status = parsed.status as VirtualServerStatus | undefined
    return {
      kind,
      metadata: named,
      backends: discoveredBackends(spec, status),
      port: undefined,
      resourceUrl: spec.resourceUrl,
      externalUrl: undefined,
      authServer: undefined,
      callers:
        spec.incomingAuth === undefined
          ? undefined
          : manifestCallers(spec.incomingAuth, ['spec', 'incomingAuth'], named.namespace),
      settings: {},
      caBundle: undefined,
      telemetry: spec.telemetryConfigRef && { reference: spec.telemetryConfigRef },
      isAudited: false,
      connections: undefined,
      tools: undefined,
      refused: fieldsBelow(WORKLOAD_FIELDS.VirtualMCPServer, '', 'rejected')
        .filter(([path, { asks, isOverridable }]) => isOverridable !== true && asksFor(spec, path, asks))
        .map(([path, { details }]) => ({ path: ['spec', ...path.split('.')], details })),
      ownAuthServer: spec.authServerConfig,
    }
  }
  // The common fields of the other kinds, each of them optional.
  const spec = parsed.spec as Partial<RemoteSpec>
  const field = spec.remoteUrl === undefined ? 'remoteURL' : 'remoteUrl'
  const url = spec[field]
  const externalAuth = written(spec.externalAuthConfigRef, ['spec', 'externalAuthConfigRef', 'name'])
  return {
    kind,
    metadata: named,
    backends: url === undefined ? [] : [{ name: named.name, url, urlPath: ['spec', field], externalAuth }],
    port: spec.port ?? spec.proxyPort,
    resourceUrl: spec.resourceUrl,
    externalUrl: spec.externalURL,
    callers: kind === 'MCPServer' ? undefined : manifestCallers(spec, ['spec'], named.namespace),
    settings: {
      allowBoundTokens: spec.allowBoundTokens,
      headerForward: spec.headerForward,
      timeouts: spec.timeouts,
      limits: spec.limits,
      sseKeepAlive: spec.sseKeepAlive,
      insecureAllowAnonymous: spec.insecureAllowAnonymous,
    },
    caBundle: spec.caBundleRef,
    telemetry:
      (spec.telemetryConfigRef && { reference: spec.telemetryConfigRef }) ??
      (spec.telemetry && { inline: spec.telemetry }),
    tools: written(spec.toolConfigRef, ['spec', 'toolConfigRef', 'name']),
    authServer: written(spec.authServerRef, ['spec', 'authServerRef', 'name']),
    isAudited: spec.audit?.enabled === true,
    connections: connectionsOf(spec),
    // The schema has rejected them.
    refused: [],
    ownAuthServer: undefined,
  }
}

/** The section of a manifest; its pages are at the URL for clients unless it names another. */
function connectionsOf({ connections, externalURL }: Partial<RemoteSpec>): Connections | undefined {
  if (connections === undefined || connections.baseUrl !== undefined || externalURL === undefined) return connections
  return { ...connections, baseUrl: externalURL.replace(/\/$/, '') }
}
