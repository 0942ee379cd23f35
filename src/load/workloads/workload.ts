import type { Metadata } from '../../fields/index.ts'
import {
  asksFor,
  type CaBundleRef,
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

/** What is read of a workload. */
export interface Workload {
  readonly kind: WorkloadKind
  readonly metadata: Metadata
  /** What it is a proxy for; nothing for an MCPServer, whose references only are looked at. */
  readonly backends: readonly Backend[]
  readonly port: number | undefined
  readonly resourceUrl: string | undefined
  /** Where clients reach it: the resource of a route that names none. */
  readonly externalUrl: string | undefined
  readonly authServer: WrittenReference | undefined
  readonly callers: ManifestCallers | undefined
  /** Settings of its routes that are not the defaults. */
  readonly settings: RouteSettings
  /** The authorities of what it is a proxy for. */
  readonly caBundle: CaBundleRef | undefined
  /** Where its traces go: an MCPTelemetryConfig, or what it says itself. */
  readonly telemetry:
    | { readonly reference: TelemetryConfigRef }
    | { readonly inline: InlineTelemetry; readonly reference?: undefined }
    | undefined
  /** Fields that are refused where it becomes routes: they restrict what nothing here does. */
  readonly refused: readonly { readonly path: readonly string[]; readonly says: string }[]
  /** The authorization server that is part of a VirtualMCPServer. */
  readonly ownAuthServer: EmbeddedAuthServer | undefined
}

/** The fields of a parsed workload, whichever kind it is. */
export function toWorkload(kind: WorkloadKind, parsed: ParsedWorkload): Workload {
  const { metadata: named } = parsed
  if (kind === 'VirtualMCPServer') {
    // What the schema of this kind has made sure of.
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
      refused: fieldsBelow(WORKLOAD_FIELDS.VirtualMCPServer, '', 'rejected')
        .filter(([path, { asks, isOverridable }]) => isOverridable !== true && asksFor(spec, path, asks))
        .map(([path, { says }]) => ({ path: ['spec', ...path.split('.')], says })),
      ownAuthServer: spec.authServerConfig,
    }
  }
  // What the schemas of the other kinds have in common, each of them optional.
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
    authServer: written(spec.authServerRef, ['spec', 'authServerRef', 'name']),
    // The schema has refused it.
    refused: [],
    ownAuthServer: undefined,
  }
}
