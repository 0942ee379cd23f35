import type {
  ManifestSection,
  MCPExternalAuthConfig,
  MCPOIDCConfig,
  MCPTelemetryConfig,
  MCPToolConfig,
  ProxyConfig,
  RegistryConfig,
  RoleTest,
} from '../../resources/index.ts'
import type { FoundPolicies } from '../cedar/authz-config.ts'
import type { Workload } from '../workloads/workload.ts'
import type { MarkedPod } from './marked-pod.ts'
import type { NamedFile, NamedSecret } from './named-files.ts'
import type { Located, Problem } from './problem.ts'
import type { FoundReference } from './references.ts'

/** A document as declared, valid or not: the source and target of references. */
export interface Declared {
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly place: Located<unknown>
  /** Its references to MCPExternalAuthConfig, MCPOIDCConfig, MCPTelemetryConfig and MCPToolConfig. */
  readonly references: readonly FoundReference[]
}

/** The Cedar policies of one configuration of ToolHive. */
export interface PolicySet {
  /** Of the document; empty for an `authz.json`. */
  readonly kind: string
  readonly namespace: string
  readonly name: string
  /** Where they are in the document. */
  readonly path: readonly string[]
  readonly found: FoundPolicies
}

/** The content of a set of files. Documents with problems are only in `problems` and `declared`. */
export interface Loaded {
  readonly auths: readonly LocatedAuth[]
  readonly oidcConfigs: readonly LocatedOidcConfig[]
  readonly telemetryConfigs: readonly LocatedTelemetryConfig[]
  readonly toolConfigs: readonly LocatedToolConfig[]
  readonly proxies: readonly Located<ProxyConfig>[]
  readonly workloads: readonly Located<Workload>[]
  readonly registries: readonly Located<RegistryConfig>[]
  /** Cases for `extauth test`; the proxy ignores them. */
  readonly roleTests: readonly Located<RoleTest>[]
  /** `auth` sections in files of their own. */
  readonly callers: readonly Located<ManifestSection>[]
  /** Cedar policies of any document, among them documents that are skipped. */
  readonly policies: readonly Located<PolicySet>[]
  /** Pods and pod templates with labels or annotations of the group. */
  readonly pods: readonly Located<MarkedPod>[]
  readonly declared: readonly Declared[]
  /** The files and secrets referenced by valid documents. */
  readonly namedFiles: readonly NamedFile[]
  readonly namedSecrets: readonly NamedSecret[]
  /** Every problem of every document, in the order of files and lines. */
  readonly problems: readonly Problem[]
  /** Allowed but questionable settings. */
  readonly warnings: readonly Problem[]
  /** Fields of workloads that are not read. */
  readonly unused: readonly Problem[]
  /** Documents of other groups and kinds, except ConfigMaps with supported documents. */
  readonly skipped: readonly { readonly file: string; readonly line: number; readonly kind: string }[]
  readonly files: number
}

/** An MCPExternalAuthConfig with the hash of its defaulted spec. */
export interface LocatedAuth extends Located<MCPExternalAuthConfig> {
  readonly configHash: string
}

/** An MCPOIDCConfig with the hash of its spec. */
export interface LocatedOidcConfig extends Located<MCPOIDCConfig> {
  readonly configHash: string
}

/** An MCPTelemetryConfig with the hash of its spec. */
export interface LocatedTelemetryConfig extends Located<MCPTelemetryConfig> {
  readonly configHash: string
}

/** An MCPToolConfig with the hash of its spec. */
export interface LocatedToolConfig extends Located<MCPToolConfig> {
  readonly configHash: string
}

/** `Loaded` while it is being filled. */
export type Loading = { -readonly [K in keyof Loaded]: Loaded[K] extends readonly (infer T)[] ? T[] : Loaded[K] }

export const nothingLoaded = (): Loading => ({
  auths: [],
  oidcConfigs: [],
  telemetryConfigs: [],
  toolConfigs: [],
  proxies: [],
  workloads: [],
  registries: [],
  roleTests: [],
  callers: [],
  policies: [],
  pods: [],
  declared: [],
  namedFiles: [],
  namedSecrets: [],
  problems: [],
  warnings: [],
  unused: [],
  skipped: [],
  files: 0,
})

/** The same without references to objects that are not loaded, except those to callers. */
export const withoutReferences = (loading: Loading): Loading => ({
  ...loading,
  workloads: loading.workloads.map((located) => {
    const { backends, telemetry, ...document } = located.document
    return {
      ...located,
      document: {
        ...document,
        backends: backends.map((backend) => Object.assign({}, backend, { externalAuth: undefined })),
        telemetry: telemetry?.reference === undefined ? telemetry : undefined,
        authServer: undefined,
        tools: undefined,
      },
    }
  }),
  declared: loading.declared.map((declared) => ({
    ...declared,
    references: declared.references.filter(({ role }) => role === 'callers'),
  })),
})
