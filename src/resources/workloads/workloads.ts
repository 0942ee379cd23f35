import { z } from 'zod'
import { manifestSection } from '../auth-section.ts'
import { caBundleRef } from '../ca-bundle.ts'
import { connections } from '../connections.ts'
import { headerForward } from './header-forward.ts'
import {
  later,
  once,
  authServerReference,
  metadata,
  exclusive,
  withRules,
  type Rule,
  httpUrl,
  int32,
  timerDuration,
} from '../../fields/index.ts'
import {
  asksFor,
  fieldsBelow,
  IN_A_CLUSTER,
  type FieldTable,
  refusals,
  tabledFields,
  WORKLOAD_FIELDS,
} from '../manifest-fields/index.ts'
import { noMetadataTarget } from './metadata-access.ts'
import { oidcConfig, oidcConfigRef } from './oidc-callers.ts'
import { inlineTelemetry, telemetryConfigRef, TRACES } from './telemetry.ts'
import { toolConfigRef, TOOLS } from './tool-config.ts'
import { allowBoundTokens, limits, timeouts } from '../proxy-config.ts'
import { podFields, remoteProxyStatus } from './remote-proxy.ts'
import { virtualServerSpec, virtualServerStatus } from './virtual-server.ts'
import { EXTERNAL_AUTH, reference, resourceUrl } from './workload-fields.ts'

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

/** Callers of a remote server (decisions §1). */
const callerFields = () => ({
  auth: manifestSection().optional().describe('Who may call. Extends the specification.'),
  oidcConfig: oidcConfig().optional().describe('Who may call, as one OpenID provider.'),
  oidcConfigRef: oidcConfigRef().optional().describe('Who may call, from an MCPOIDCConfig.'),
})

/** Connection settings of a remote server, as on a route of a ProxyConfig. */
const routeFields = () => ({
  allowBoundTokens: allowBoundTokens()
    .optional()
    .describe(
      'Accepts tokens that are bound to a key of the client (cnf), whose binding is not checked. Extends the specification.',
    ),
  headerForward: headerForward()
    .optional()
    .describe('Headers that each request to the remote server gets beside its credential.'),
  timeouts: timeouts().optional().describe('Toward the backend. Extends the specification.'),
  limits: limits().optional().describe('Bounds of sizes. Extends the specification.'),
  sseKeepAlive: timerDuration().optional().describe('Interval of SSE keep-alive comments. Extends the specification.'),
  insecureAllowAnonymous: z
    .boolean()
    .optional()
    .describe(
      'Lets anonymous callers use the credential of the proxy on a bind that is not loopback. Extends the specification.',
    ),
})

const remote = <Shape extends z.core.$ZodLooseShape>(table: FieldTable, shape: Shape, rules: readonly Rule[] = []) =>
  withRules(
    z.looseObject({
      ...tabledFields(table, '', [...Object.keys(shape), 'remoteUrl', 'remoteURL', 'caBundleRef', 'toolConfigRef']),
      remoteUrl: httpUrl().optional().describe('URL of the remote MCP server.'),
      remoteURL: httpUrl().optional().describe('The same as remoteUrl.'),
      caBundleRef: caBundleRef()
        .optional()
        .describe('CA certificates that replace the system roots for the remote server.'),
      toolConfigRef: toolConfigRef().optional().describe(TOOLS),
      ...shape,
    }),
    [
      exclusive('remoteUrl', 'remoteURL'),
      oneRemoteUrl,
      noMetadataTarget('remoteUrl'),
      noMetadataTarget('remoteURL'),
      ...refusals(table),
      ...rules,
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
      oidcConfigRef: oidcConfigRef().optional().describe('Who may call, from an MCPOIDCConfig.'),
      telemetryConfigRef: telemetryConfigRef().optional().describe(TRACES),
      toolConfigRef: toolConfigRef().optional().describe(TOOLS),
    }),
  MCPRemoteProxy: () =>
    remote(
      WORKLOAD_FIELDS.MCPRemoteProxy,
      {
        port: port(),
        proxyPort: port().describe('The same as port.'),
        resourceUrl: resourceUrl(),
        externalURL: httpUrl()
          .optional()
          .describe('URL that clients connect to; the default of resourceUrl. Extends the specification.'),
        ...authReferences(),
        ...callerFields(),
        ...routeFields(),
        ...podFields(),
        connections: later(connections)
          .optional()
          .describe('Accounts that callers connect; `connections` of a ProxyConfig replaces it.'),
        audit: z
          .looseObject({
            enabled: z
              .boolean()
              .optional()
              .describe('Writes audit events to standard output. `audit` of a ProxyConfig replaces it.'),
          })
          .optional()
          .describe('The audit trail.'),
        telemetryConfigRef: telemetryConfigRef().optional().describe(TRACES),
        telemetry: inlineTelemetry().optional().describe('Where traces go, inline.'),
      },
      [
        exclusive('telemetry', 'telemetryConfigRef'),
        exclusive('port', 'proxyPort'),
        exclusive('replicas', 'autoscaling'),
        exclusive('serviceAccountName', 'serviceAccount'),
        exclusive('serviceAccountName', 'awsRoleArn'),
        exclusive('serviceAccount', 'awsRoleArn'),
      ],
    ),
  MCPServerEntry: () =>
    remote(WORKLOAD_FIELDS.MCPServerEntry, {
      externalAuthConfigRef: reference().optional().describe(EXTERNAL_AUTH),
      ...callerFields(),
      ...routeFields(),
    }),
  VirtualMCPServer: virtualServerSpec,
} satisfies Record<WorkloadKind, () => z.ZodType>

/** Fields of `spec` that are read, by kind; the others are listed by `validate --verbose` only (decisions §1). */
export const workloadFields = (kind: WorkloadKind): readonly string[] => {
  const isTold = (name: string): boolean => whyNotRead(kind, name) !== undefined
  return FIELDS[kind]().filter((name) => !isTold(name))
}

/** Why a known field of another program's `spec` is not read; undefined for an unknown field. */
export function whyNotRead(kind: WorkloadKind, field: string): string | undefined {
  const table: FieldTable = WORKLOAD_FIELDS[kind]
  const row = Object.hasOwn(table, field) ? table[field] : undefined
  return row?.is === 'ignored' ? row.details : undefined
}

/** Why a supported field has no effect in files: it concerns pods, or its value requests nothing. */
export function whyIdle(kind: WorkloadKind, field: string, value: unknown): string | undefined {
  const table: FieldTable = WORKLOAD_FIELDS[kind]
  const row = Object.hasOwn(table, field) ? table[field] : undefined
  if (row?.is === 'supported' && row.details.startsWith(IN_A_CLUSTER)) return 'it is for the pods of a cluster'
  const refused = fieldsBelow(table, field, 'rejected')
  const isRead = row !== undefined || fieldsBelow(table, field, 'supported').length > 0
  if (isRead || refused.length === 0 || refused.some(([path, { asks }]) => asksFor(value, path, asks))) return undefined
  return 'it asks for nothing'
}

const FIELDS: Readonly<Record<WorkloadKind, () => readonly string[]>> = {
  MCPServer: once(() => Object.keys(SPECS.MCPServer().shape)),
  MCPRemoteProxy: once(() => Object.keys(SPECS.MCPRemoteProxy().shape)),
  MCPServerEntry: once(() => Object.keys(SPECS.MCPServerEntry().shape)),
  VirtualMCPServer: once(() => Object.keys(SPECS.VirtualMCPServer().shape)),
}

const CALLER_FIELDS: ReadonlySet<string> = new Set([
  'auth',
  'authServerConfig',
  'authServerRef',
  'externalAuthConfigRef',
  'incomingAuth',
  'oidcConfig',
  'oidcConfigRef',
  'toolConfigRef',
])

/** Whether a field of `spec` decides access: a misspelled one must not be ignored. */
export const decidesAccess = (kind: WorkloadKind, field: string): boolean =>
  CALLER_FIELDS.has(field) ||
  fieldsBelow(WORKLOAD_FIELDS[kind], '', 'rejected').some(([path]) => path.split('.')[0] === field)

/** Fields of a VirtualMCPServer's `incomingAuth`, all of which decide access. */
export const INCOMING_AUTH_FIELDS: readonly string[] = [
  'type',
  ...Object.keys(WORKLOAD_FIELDS.VirtualMCPServer).flatMap((path) => /^incomingAuth\.(\w+)$/.exec(path)?.[1] ?? []),
]

/** Fields of other controllers, which are not misspellings. */
export const FOREIGN_FIELDS: readonly string[] = ['resources']

const STATUSES = {
  MCPServer: () => z.unknown(),
  MCPRemoteProxy: remoteProxyStatus,
  MCPServerEntry: () => z.unknown(),
  VirtualMCPServer: virtualServerStatus,
} satisfies Record<WorkloadKind, () => z.ZodType>

/** Schema of one workload kind; only the supported fields of its spec are validated. */
export const workload = (kind: WorkloadKind) =>
  z.looseObject({
    apiVersion: z.string(),
    kind: z.literal(kind),
    metadata: metadata(),
    spec: SPECS[kind](),
    status: STATUSES[kind]().optional(),
  })

export type ParsedWorkload = z.output<ReturnType<typeof workload>>

/** Route settings in a manifest. */
export type RouteSettings = { readonly [K in keyof ReturnType<typeof routeFields>]?: RouteField<K> | undefined }
type RouteField<K extends keyof ReturnType<typeof routeFields>> = z.output<ReturnType<typeof routeFields>[K]>

/** A parsed MCPRemoteProxy; other kinds of remote servers have some of its fields. */
export type RemoteSpec = z.output<ReturnType<typeof SPECS.MCPRemoteProxy>>
