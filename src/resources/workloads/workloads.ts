import { z } from 'zod'
import { manifestSection } from '../auth-section.ts'
import type { EmbeddedAuthServer } from '../embedded-auth-server.ts'
import {
  once,
  authServerReference,
  metadata,
  type Metadata,
  exclusive,
  isRecord,
  withRules,
  type Rule,
  httpUrl,
  int32,
  timerDuration,
} from '../../fields/index.ts'
import { DISHONOURED_FIELDS, manifestCallers, type ManifestCallers } from './manifest-callers.ts'
import { noMetadataTarget } from './metadata-access.ts'
import { oidcConfig, oidcConfigRef } from './oidc-callers.ts'
import { limits, timeouts } from '../proxy-config.ts'
import { podFields, remoteProxyStatus } from './remote-proxy.ts'
import { discoveredBackends, virtualServerSpec, virtualServerStatus } from './virtual-server.ts'
import {
  EXTERNAL_AUTH,
  reference,
  resourceUrl,
  written,
  type Backend,
  type WrittenReference,
} from './workload-fields.ts'

/** The kinds that reference MCPExternalAuthConfig (specification, Referenced by). */
export const WORKLOAD_KINDS = ['MCPServer', 'MCPRemoteProxy', 'MCPServerEntry', 'VirtualMCPServer'] as const
export type WorkloadKind = (typeof WORKLOAD_KINDS)[number]

const port = () => int32(1, 65_535).optional().describe('Port of the proxy on loopback, unless --listen is given.')

const oneRemoteUrl: Rule = {
  message: 'missing, expected the URL of the remote MCP server',
  at: 'remoteUrl',
  holds: (value) => value.remoteUrl !== undefined || value.remoteURL !== undefined,
  cel: 'has(self.remoteUrl) || has(self.remoteURL)',
  json: { anyOf: [{ required: ['remoteUrl'] }, { required: ['remoteURL'] }] },
}

/** Who may call a remote server through us (decisions §1); the last fields are not honoured, and kept to be told about. */
const callerFields = () => ({
  auth: manifestSection().optional().describe('Who may call. Extends the specification.'),
  oidcConfig: oidcConfig().optional().describe('Who may call, as one OpenID provider.'),
  oidcConfigRef: oidcConfigRef().optional().describe('Who may call, as an MCPOIDCConfig says.'),
  ...Object.fromEntries(
    Object.keys(DISHONOURED_FIELDS).map((name) => [
      name,
      z.unknown().optional().describe('Not honoured here, which is told.'),
    ]),
  ),
})

/** What carries a credential or an authority, and is not brought into requests here: it must not be left out in silence. */
const NOT_CARRIED = [
  {
    message:
      'secrets in headers are not sent here; expected none, and an MCPExternalAuthConfig of type "headerInjection"',
    at: 'headerForward',
    holds: ({ headerForward }: Readonly<Record<string, unknown>>) => {
      const named = isRecord(headerForward) ? headerForward['addHeadersFromSecret'] : undefined
      return named === undefined || named === null || (Array.isArray(named) && named.length === 0)
    },
  },
  {
    message: 'headers are not added here; expected none, and an MCPExternalAuthConfig of type "headerInjection"',
    at: 'headerForward',
    holds: ({ headerForward }: Readonly<Record<string, unknown>>) => {
      const added = isRecord(headerForward) ? headerForward['addPlaintextHeaders'] : undefined
      return added === undefined || added === null || (isRecord(added) && Object.keys(added).length === 0)
    },
  },
  {
    message: 'authorities of the remote server are not read here; expected none, and a server that the system trusts',
    at: 'caBundleRef',
    holds: ({ caBundleRef }: Readonly<Record<string, unknown>>) => caBundleRef === undefined || caBundleRef === null,
  },
] satisfies readonly Rule[]

/** How a remote server is reached, as on a route of a ProxyConfig. */
const routeFields = () => ({
  timeouts: timeouts().optional().describe('Toward the backend. Extends the specification.'),
  limits: limits().optional().describe('Bounds of sizes. Extends the specification.'),
  sseKeepAlive: timerDuration().optional().describe('Interval of SSE keep-alive comments. Extends the specification.'),
})

const remote = <Shape extends z.core.$ZodLooseShape>(shape: Shape) =>
  withRules(
    z.looseObject({
      remoteUrl: httpUrl().optional().describe('URL of the remote MCP server.'),
      remoteURL: httpUrl().optional().describe('The same as remoteUrl.'),
      headerForward: z.unknown().optional().describe('Refused with secrets in it, which are not sent here.'),
      caBundleRef: z.unknown().optional().describe('Refused: authorities of a remote server are not read here.'),
      ...shape,
    }),
    [
      exclusive('remoteUrl', 'remoteURL'),
      oneRemoteUrl,
      noMetadataTarget('remoteUrl'),
      noMetadataTarget('remoteURL'),
      ...NOT_CARRIED,
      exclusive('auth', 'oidcConfig'),
      exclusive('auth', 'oidcConfigRef'),
      exclusive('oidcConfig', 'oidcConfigRef'),
    ],
  )

const authReferences = () => ({
  externalAuthConfigRef: reference().optional().describe(EXTERNAL_AUTH),
  authServerRef: z
    .looseObject(authServerReference().shape)
    .optional()
    .describe('Embedded authorization server for the callers of the workload.'),
})

const SPECS = {
  MCPServer: () =>
    z.looseObject({
      port: port(),
      ...authReferences(),
      oidcConfigRef: oidcConfigRef().optional().describe('Who may call, as an MCPOIDCConfig says.'),
    }),
  MCPRemoteProxy: () =>
    remote({
      port: port(),
      resourceUrl: resourceUrl(),
      ...authReferences(),
      ...callerFields(),
      ...routeFields(),
      ...podFields(),
    }),
  MCPServerEntry: () =>
    remote({ externalAuthConfigRef: reference().optional().describe(EXTERNAL_AUTH), ...callerFields() }),
  VirtualMCPServer: virtualServerSpec,
} satisfies Record<WorkloadKind, () => z.ZodType>

/** Fields of `spec` that are read, by kind; the others are listed by `validate --verbose` only (decisions §1). */
export const workloadFields = (kind: WorkloadKind): readonly string[] => FIELDS[kind]()

const FIELDS: Readonly<Record<WorkloadKind, () => readonly string[]>> = {
  MCPServer: once(() => Object.keys(SPECS.MCPServer().shape)),
  MCPRemoteProxy: once(() => Object.keys(SPECS.MCPRemoteProxy().shape)),
  MCPServerEntry: once(() => Object.keys(SPECS.MCPServerEntry().shape)),
  VirtualMCPServer: once(() => Object.keys(SPECS.VirtualMCPServer().shape)),
}

/** Fields of other controllers that are no misspellings of ours. */
export const FOREIGN_FIELDS: readonly string[] = ['resources']

const STATUSES = {
  MCPServer: () => z.unknown(),
  MCPRemoteProxy: remoteProxyStatus,
  MCPServerEntry: () => z.unknown(),
  VirtualMCPServer: virtualServerStatus,
} satisfies Record<WorkloadKind, () => z.ZodType>

/** Schema of one workload kind; of its spec only our fields are checked. */
export const workload = (kind: WorkloadKind) =>
  z.looseObject({
    apiVersion: z.string(),
    kind: z.literal(kind),
    metadata: metadata(),
    spec: SPECS[kind](),
    status: STATUSES[kind]().optional(),
  })

/** Settings of a route that a manifest may have. */
export type RouteSettings = { readonly [K in keyof ReturnType<typeof routeFields>]?: RouteField<K> | undefined }
type RouteField<K extends keyof ReturnType<typeof routeFields>> = z.output<ReturnType<typeof routeFields>[K]>

/** What is read of a workload. */
export interface Workload {
  readonly kind: WorkloadKind
  readonly metadata: Metadata
  /** What it is a proxy for; nothing for an MCPServer, whose references only are looked at. */
  readonly backends: readonly Backend[]
  readonly port: number | undefined
  readonly resourceUrl: string | undefined
  readonly authServer: WrittenReference | undefined
  readonly callers: ManifestCallers | undefined
  /** Settings of its routes that are not the defaults. */
  readonly settings: RouteSettings
  /** The authorization server that is part of a VirtualMCPServer. */
  readonly ownAuthServer: EmbeddedAuthServer | undefined
}

/** The fields of a parsed workload, whichever kind it is. */
export function toWorkload(kind: WorkloadKind, parsed: z.output<ReturnType<typeof workload>>): Workload {
  const { metadata: named } = parsed
  if (kind === 'VirtualMCPServer') {
    // What the schema of this kind has made sure of.
    const spec = parsed.spec as z.output<ReturnType<typeof virtualServerSpec>>
    const status = parsed.status as z.output<ReturnType<typeof virtualServerStatus>> | undefined
    return {
      kind,
      metadata: named,
      backends: discoveredBackends(spec, status),
      port: undefined,
      resourceUrl: spec.resourceUrl,
      authServer: undefined,
      callers:
        spec.incomingAuth === undefined
          ? undefined
          : manifestCallers(spec.incomingAuth, ['spec', 'incomingAuth'], named.namespace),
      settings: {},
      ownAuthServer: spec.authServerConfig,
    }
  }
  // What the schemas of the other kinds have in common, each of them optional.
  const spec = parsed.spec as Partial<z.output<ReturnType<typeof SPECS.MCPRemoteProxy>>>
  const field = spec.remoteUrl === undefined ? 'remoteURL' : 'remoteUrl'
  const url = spec[field]
  const externalAuth = written(spec.externalAuthConfigRef, ['spec', 'externalAuthConfigRef', 'name'])
  return {
    kind,
    metadata: named,
    backends: url === undefined ? [] : [{ name: named.name, url, urlPath: ['spec', field], externalAuth }],
    port: spec.port,
    resourceUrl: spec.resourceUrl,
    callers: kind === 'MCPServer' ? undefined : manifestCallers(spec, ['spec'], named.namespace),
    settings: { timeouts: spec.timeouts, limits: spec.limits, sseKeepAlive: spec.sseKeepAlive },
    authServer: written(spec.authServerRef, ['spec', 'authServerRef', 'name']),
    ownAuthServer: undefined,
  }
}
