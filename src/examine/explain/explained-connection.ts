import { matchIn } from '../../connections/index.ts'
import { type Connections, type ResolvedAuth, type ResolvedRoute, upstreamTokenOf } from '../../resources/index.ts'
import type { ExplainedCaller } from './explain-input.ts'

/** The connected account whose credential a request gets. */
export interface ExplainedConnection {
  /** Name in `connections.providers`. */
  readonly provider: string
  readonly type: string
  /** The field of the config that names it. */
  readonly field: string
  /** The person to whom it belongs; undefined: the local user, or an identity that is known only after introspection. */
  readonly owner: { readonly issuer: string; readonly identity: string } | undefined
  /** How the person proves who they are; undefined for the local user. */
  readonly login:
    | {
        readonly issuer: string
        /** Claims that must be equal in the login, with the caller's values; undefined: one of them is missing. */
        readonly match: Readonly<Record<string, string | number>> | undefined
        readonly claims: readonly string[]
      }
    | undefined
  /** What a caller without it gets, best way first (connections.md §2). */
  readonly without: readonly string[]
}

const ASKABLE = 'tools/call, prompts/get, resources/read'
const WAYS = [
  `way 1, MCP 2026-07-28 with elicitation.url: input_required with the link (${ASKABLE})`,
  `way 2, MCP 2025-11-25 with elicitation.url: error -32042 with the link (${ASKABLE})`,
  'way 3, other clients: a tool result with isError and the link; other methods get error -32000',
] as const

/** Explains the connection of a config; undefined if it uses none. */
export function connectionFor(
  auth: ResolvedAuth,
  { callers, authServer }: Pick<ResolvedRoute, 'callers' | 'authServer'>,
  caller: ExplainedCaller,
  connections: Connections | undefined,
): ExplainedConnection | undefined {
  const { upstream } = auth
  if (upstream?.isConnection !== true || connections === undefined) return undefined
  const found = connections.providers.find(({ name }) => name === upstream.provider)
  if (found === undefined) return undefined
  const { issuer, identity, format, claims } = caller
  const isLocal = connections.singleUser || callers.mode === 'anonymous'
  const isEmbedded = issuer === authServer?.server.spec.issuer
  const names = isEmbedded ? ['sub'] : (connections.login.find((one) => one.issuerUrl === issuer)?.match ?? [])
  return {
    provider: found.name,
    type: found.type,
    field: `${auth.type}.${upstreamTokenOf(auth)?.field ?? ''}`,
    owner: isLocal || format === 'opaque' ? undefined : { issuer, identity },
    login: isLocal || names.length === 0 ? undefined : { issuer, match: matchIn(names, claims), claims: names },
    without: [
      ...WAYS,
      found.listing === undefined
        ? 'handshake and lists: a placeholder server whose only tool is connect_account'
        : 'handshake, lists and pings: the credential of listing.secretRef',
    ],
  }
}

/** Reasons why the person cannot connect the account. */
export function connectionNotes({ login }: ExplainedConnection): readonly string[] {
  if (login === undefined || login.match !== undefined) return []
  return [
    `the claims lack one of ${login.claims.join(', ')}, which the login at ${login.issuer} compares: no account can be connected`,
  ]
}

/** The lines of the report: the result first, the rest for `verbose`. */
export function connectionLines(connection: ExplainedConnection | undefined): {
  readonly first: readonly string[]
  readonly rest: readonly string[]
} {
  if (connection === undefined) return { first: [], rest: [] }
  const { provider, type, field, owner, login, without } = connection
  const whose =
    owner === undefined
      ? login === undefined
        ? 'the local user'
        : 'known only after introspection'
      : `issuer ${owner.issuer}, identity ${owner.identity}`
  const proof = Object.entries(login?.match ?? {}).map(([name, value]) => `${name} ${JSON.stringify(value)}`)
  return {
    first: [`connection    ${provider} (${type}), named in ${field}`, `owner         ${whose}`],
    rest: [
      ...(login === undefined || proof.length === 0
        ? []
        : [`proof         login at ${login.issuer} with equal ${proof.join(', ')}`]),
      ...without.map((way) => `without it    ${way}`),
    ],
  }
}
