import { z } from 'zod'
import type { EmbeddedAuthServer } from './embedded-auth-server.ts'
import { authServerReference, metadata, type Metadata } from './metadata.ts'
import { podFields, remoteProxyStatus } from './remote-proxy.ts'
import { exclusive, withRules, type Rule } from './rules.ts'
import { httpUrl, int32 } from './scalars.ts'
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

const remote = <Shape extends z.core.$ZodLooseShape>(shape: Shape) =>
  withRules(
    z.looseObject({
      remoteUrl: httpUrl().optional().describe('URL of the remote MCP server.'),
      remoteURL: httpUrl().optional().describe('The same as remoteUrl.'),
      ...shape,
    }),
    [exclusive('remoteUrl', 'remoteURL'), oneRemoteUrl],
  )

const authReferences = () => ({
  externalAuthConfigRef: reference().optional().describe(EXTERNAL_AUTH),
  authServerRef: z
    .looseObject(authServerReference().shape)
    .optional()
    .describe('Embedded authorization server for the callers of the workload.'),
})

const SPECS = {
  MCPServer: () => z.looseObject({ port: port(), ...authReferences() }),
  MCPRemoteProxy: () => remote({ port: port(), resourceUrl: resourceUrl(), ...authReferences(), ...podFields() }),
  MCPServerEntry: () => remote({ externalAuthConfigRef: reference().optional().describe(EXTERNAL_AUTH) }),
  VirtualMCPServer: virtualServerSpec,
} satisfies Record<WorkloadKind, () => z.ZodType>

/** Fields of `spec` that are read, by kind; the others are listed by `validate --verbose` only (decisions §1). */
export const WORKLOAD_FIELDS: Readonly<Record<WorkloadKind, readonly string[]>> = {
  MCPServer: ['port', 'externalAuthConfigRef', 'authServerRef'],
  MCPRemoteProxy: [
    'remoteUrl',
    'remoteURL',
    'port',
    'resourceUrl',
    'externalAuthConfigRef',
    'authServerRef',
    ...Object.keys(podFields()),
  ],
  MCPServerEntry: ['remoteUrl', 'remoteURL', 'externalAuthConfigRef'],
  VirtualMCPServer: ['outgoingAuth', 'authServerConfig', 'resourceUrl'],
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

/** What is read of a workload. */
export interface Workload {
  readonly kind: WorkloadKind
  readonly metadata: Metadata
  /** What it is a proxy for; nothing for an MCPServer, whose references only are looked at. */
  readonly backends: readonly Backend[]
  readonly port: number | undefined
  readonly resourceUrl: string | undefined
  readonly authServer: WrittenReference | undefined
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
      ownAuthServer: spec.authServerConfig,
    }
  }
  const spec = parsed.spec as {
    remoteUrl?: string
    remoteURL?: string
    port?: number
    resourceUrl?: string
    externalAuthConfigRef?: { name: string }
    authServerRef?: { name: string }
  }
  const field = spec.remoteUrl === undefined ? 'remoteURL' : 'remoteUrl'
  const url = spec[field]
  const externalAuth = written(spec.externalAuthConfigRef, ['spec', 'externalAuthConfigRef', 'name'])
  return {
    kind,
    metadata: named,
    backends: url === undefined ? [] : [{ name: named.name, url, urlPath: ['spec', field], externalAuth }],
    port: spec.port,
    resourceUrl: spec.resourceUrl,
    authServer: written(spec.authServerRef, ['spec', 'authServerRef', 'name']),
    ownAuthServer: undefined,
  }
}
