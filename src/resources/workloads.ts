import { z } from 'zod'
import { metadata, type Metadata } from './metadata.ts'
import { exclusive, withRules, type Rule } from './rules.ts'
import { httpUrl, int32, objectName } from './scalars.ts'

/** The kinds that reference MCPExternalAuthConfig (specification, Referenced by). */
export const WORKLOAD_KINDS = ['MCPServer', 'MCPRemoteProxy', 'MCPServerEntry', 'VirtualMCPServer'] as const
export type WorkloadKind = (typeof WORKLOAD_KINDS)[number]

// Specs of workloads belong to other controllers: what is not ours is let through, here and in references.
const reference = () =>
  z.looseObject({ name: objectName().describe('Name of an MCPExternalAuthConfig in the same namespace.') })
const EXTERNAL_AUTH = 'How the workload authenticates to the external service.'
const port = () => int32(1, 65_535).optional().describe('Port of the proxy on loopback, unless --listen is given.')

const oneRemoteUrl: Rule = {
  message: 'missing, expected the URL of the remote MCP server',
  at: 'remoteUrl',
  holds: (value) => value.remoteUrl !== undefined || value.remoteURL !== undefined,
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
  authServerRef: reference().optional().describe('Embedded authorization server for the callers of the workload.'),
})

const SPECS = {
  MCPServer: () => z.looseObject({ port: port(), ...authReferences() }),
  MCPRemoteProxy: () => remote({ port: port(), ...authReferences() }),
  MCPServerEntry: () => remote({ externalAuthConfigRef: reference().optional().describe(EXTERNAL_AUTH) }),
  VirtualMCPServer: () =>
    z.looseObject({
      outgoingAuth: z
        .looseObject({
          default: z
            .looseObject({ externalAuthConfigRef: reference().optional().describe(EXTERNAL_AUTH) })
            .optional()
            .describe('For backends that say nothing else.'),
        })
        .optional()
        .describe('How the workload authenticates to its backends.'),
    }),
} satisfies Record<WorkloadKind, () => z.ZodType>

/** Fields of `spec` that are read, by kind; the others are listed by `validate --verbose` only (decisions §1). */
export const WORKLOAD_FIELDS: Readonly<Record<WorkloadKind, readonly string[]>> = {
  MCPServer: ['port', 'externalAuthConfigRef', 'authServerRef'],
  MCPRemoteProxy: ['remoteUrl', 'remoteURL', 'port', 'externalAuthConfigRef', 'authServerRef'],
  MCPServerEntry: ['remoteUrl', 'remoteURL', 'externalAuthConfigRef'],
  VirtualMCPServer: ['outgoingAuth'],
}

/** Schema of one workload kind; of its spec only our fields are checked. */
export const workload = (kind: WorkloadKind) =>
  z.looseObject({
    apiVersion: z.string(),
    kind: z.literal(kind),
    metadata: metadata(),
    spec: SPECS[kind](),
    status: z.unknown().optional(),
  })

/** A reference and where it is written. */
export interface WrittenReference {
  readonly name: string
  readonly path: readonly string[]
}

/** What is read of a workload. */
export interface Workload {
  readonly kind: WorkloadKind
  readonly metadata: Metadata
  /** `spec.remoteUrl` or `spec.remoteURL`, and which of the two. */
  readonly remote: { readonly url: string; readonly path: readonly string[] } | undefined
  readonly port: number | undefined
  readonly externalAuth: WrittenReference | undefined
  readonly authServer: WrittenReference | undefined
}

/** The fields of a parsed workload, whichever kind it is. */
export function toWorkload(kind: WorkloadKind, parsed: z.output<ReturnType<typeof workload>>): Workload {
  const spec = parsed.spec as {
    remoteUrl?: string
    remoteURL?: string
    port?: number
    externalAuthConfigRef?: { name: string }
    authServerRef?: { name: string }
    outgoingAuth?: { default?: { externalAuthConfigRef?: { name: string } } }
  }
  const field = spec.remoteUrl === undefined ? 'remoteURL' : 'remoteUrl'
  const url = spec[field]
  const outgoing = spec.outgoingAuth?.default?.externalAuthConfigRef
  const isVirtual = kind === 'VirtualMCPServer'
  return {
    kind,
    metadata: parsed.metadata,
    remote: url === undefined ? undefined : { url, path: ['spec', field] },
    port: spec.port,
    externalAuth: isVirtual
      ? written(outgoing, ['spec', 'outgoingAuth', 'default', 'externalAuthConfigRef', 'name'])
      : written(spec.externalAuthConfigRef, ['spec', 'externalAuthConfigRef', 'name']),
    authServer: isVirtual ? undefined : written(spec.authServerRef, ['spec', 'authServerRef', 'name']),
  }
}

const written = (reference: { name: string } | undefined, path: readonly string[]): WrittenReference | undefined =>
  reference === undefined ? undefined : { name: reference.name, path }
