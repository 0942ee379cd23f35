import { nearest } from '../../core/index.ts'
import {
  authSection,
  type Connections,
  PROXY_DEFAULTS,
  type OAuthSection,
  upstreamsInOrder,
  upstreamTokenOf,
  type ResolvedAuth,
  type ResolvedAuthServer,
  type RouteAuthServer,
  type UpstreamTokenUse,
  type UpstreamUse,
} from '../../resources/index.ts'
import { anchorSpec } from './file-paths.ts'
import type { DraftRoute } from './draft-route.ts'
import { once } from '../../fields/index.ts'
import type { LocatedAuth } from '../documents/loaded.ts'
import type { Problem } from '../documents/problem.ts'
import { httpProblem, labelOf } from './resolve-auth.ts'

/** The authorization servers of one process, each created once. */
export class AuthServers {
  readonly #byName = new Map<string, ResolvedAuthServer>()
  readonly #find: (name: string) => LocatedAuth | undefined

  /** `find` returns a config of the process's namespace. */
  constructor(find: (name: string) => LocatedAuth | undefined) {
    this.#find = find
  }

  get all(): readonly ResolvedAuthServer[] {
    return [...this.#byName.values()]
  }

  /**
   * The server where callers of a route log in: named or embedded by the route; or the target of its
   * `externalAuthConfigRef`, which serves both purposes (authserver.md §2.3); else the default `fallback`, unless the
   * route has its own `auth`. Adds problems to `problems`.
   */
  of(
    draft: DraftRoute,
    reached: LocatedAuth | undefined,
    fallback: string | undefined,
    problems: Problem[],
  ): ResolvedAuthServer | undefined {
    const named =
      draft.authServer ?? (draft.ownCallers === undefined && fallback !== undefined ? { name: fallback } : undefined)
    const isBoth = reached?.document.spec.type === 'embeddedAuthServer'
    const isSame = named !== undefined && 'name' in named && this.#find(named.name)?.document === reached?.document
    if (isBoth && named !== undefined && !isSame && (draft.authServer === undefined || 'own' in draft.authServer)) {
      const message = `${labelOf(reached)} is an authorization server, and callers of this route log in to another one already; expected a config of another type`
      problems.push(draft.problem('externalAuthConfigRef', message))
    }
    if (named !== undefined && 'own' in named) return this.#kept(draft, named.own, `its "authServerConfig"`, problems)
    const located = named === undefined ? (isBoth ? reached : undefined) : this.#find(named.name)
    // An unresolved reference, or one to another type, was reported when the files were checked.
    if (located?.document.spec.type !== 'embeddedAuthServer') return undefined
    const { metadata, spec } = located.document
    const { name, namespace } = metadata
    const server = {
      name: `${namespace}/${name}`,
      namespace,
      spec: spec.embeddedAuthServer,
      configHash: located.configHash,
      source: { file: located.file, line: located.line },
    }
    return this.#kept(draft, server, labelOf(located), problems)
  }

  #kept(draft: DraftRoute, found: ResolvedAuthServer, label: string, problems: Problem[]): ResolvedAuthServer {
    const known = this.#byName.get(found.name)
    if (known !== undefined) return known
    const { spec } = anchorSpec({ type: 'embeddedAuthServer', spec: found.spec }, found.source.file)
    const made = { ...found, spec }
    this.#byName.set(made.name, made)
    const message = httpProblem(label, { type: 'embeddedAuthServer', spec: made.spec }) ?? this.#samePath(label, made)
    if (message !== undefined) problems.push(draft.problem('authServerRef', message))
    return made
  }

  /** Endpoints are found by path only, so two servers need different paths (authserver.md §2.1). */
  #samePath(label: string, made: ResolvedAuthServer): string | undefined {
    const path = issuerPath(made)
    const other = this.all.find((server) => server !== made && issuerPath(server) === path)
    if (other === undefined) return undefined
    return `${label} has the issuer path "${path || '/'}" of "${other.name}" (${other.source.file}:${other.source.line}), expected different ones in one process`
  }
}

/** The base path of a server's endpoints; empty for none. */
export const issuerPath = ({ spec }: ResolvedAuthServer): string => new URL(spec.issuer).pathname.replace(/\/$/, '')

/** Callers of routes where only the authorization server admits them: section defaults without providers. */
export function loginOnly(): OAuthSection {
  return { mode: 'oauth', oauth: { ...defaultsOfSection(), resourceUrl: '', providers: [] } }
}

const defaultsOfSection = once((): OAuthSection['oauth'] => {
  const url = 'https://localhost'
  const providers = [{ name: 'none', issuerUrl: url, audience: 'none' }]
  const section = authSection(PROXY_DEFAULTS).parse({ oauth: { resourceUrl: url, providers } })
  if (section.mode !== 'oauth') throw new TypeError('the default mode is oauth')
  return section.oauth
})

/** What may hold tokens of a caller at other services. */
export interface TokenHolders {
  readonly server: ResolvedAuthServer | undefined
  readonly connections: Connections | undefined
}

/** The upstream token that a route uses, or why it cannot (authserver.md §2.5, connections.md §1). */
export function upstreamUse(
  auth: ResolvedAuth,
  { server, connections }: TokenHolders,
): { readonly use: UpstreamUse | undefined } | { readonly message: string } {
  const wanted = upstreamTokenOf(auth)
  if (wanted === undefined) return { use: undefined }
  const { field, kind, ownTokenDoes } = wanted
  const label = `MCPExternalAuthConfig "${auth.name}" (${auth.source.file}:${auth.source.line})`
  const names = connections?.providers.map(({ name }) => name) ?? []
  const isKnown = wanted.provider !== undefined && names.includes(wanted.provider)
  if (wanted.source === 'connection' || (wanted.source === 'login or connection' && isKnown))
    return connectionUse(auth, wanted, label, connections)
  if (server === undefined) {
    if (wanted.provider === undefined) return { use: undefined }
    if (ownTokenDoes) return { use: { provider: wanted.provider, kind, issuer: undefined, isExplicit: true } }
    const other = names.length === 0 ? '' : `, or the name of a connection: ${names.join(', ')}`
    return {
      message: `${label} uses tokens from the login of the caller, expected an "authServerRef" for this route${other}`,
    }
  }
  const { issuer, upstreamProviders, disableUpstreamTokenInjection } = server.spec
  if (disableUpstreamTokenInjection === true)
    return {
      message: `${label} sends a token from the login of the caller, and "${server.name}" has "disableUpstreamTokenInjection"; expected one of the two`,
    }
  const provider = upstreamProviders.find(({ name }, index) =>
    wanted.provider === undefined ? index === 0 : name === wanted.provider,
  )
  if (provider === undefined) {
    const known = [...upstreamProviders.map(({ name }) => name), ...(wanted.source === undefined ? [] : names)]
    const meant = nearest(wanted.provider ?? '', known)
    const hint = meant === undefined ? `expected one of ${known.join(', ')}` : `did you mean "${meant}"?`
    return { message: `${label}, "${field}": "${server.name}" has no upstream provider "${wanted.provider}", ${hint}` }
  }
  const isExplicit = wanted.provider !== undefined
  if (kind === 'id_token' && provider.type !== 'oidc') {
    if (!isExplicit) return { use: undefined }
    return { message: `${label}, "${field}": "${provider.name}" is not an OpenID provider and issues no ID tokens` }
  }
  return { use: { provider: provider.name, kind, issuer, isExplicit } }
}

/** The connection that a route uses, or why it can't. */
function connectionUse(
  { type }: ResolvedAuth,
  { field, provider: wanted = '', kind }: UpstreamTokenUse,
  label: string,
  connections: Connections | undefined,
): ReturnType<typeof upstreamUse> {
  if (connections === undefined)
    return {
      message: `${label}, "${field}": there are no connections, expected "connections" in the ProxyConfig or MCPRemoteProxy`,
    }
  const provider = connections.providers.find(({ name }) => name === wanted)
  if (provider === undefined) {
    const names = connections.providers.map(({ name }) => name)
    const meant = nearest(wanted, names)
    const hint = meant === undefined ? '' : `; did you mean "${meant}"?`
    const expected = `expected one of ${names.join(', ')}${hint}`
    return { message: `${label}, "${field}": there is no connection "${wanted}", ${expected}` }
  }
  if (kind === 'id_token' && provider.type !== 'oidc')
    return { message: `${label}, "${field}": "${wanted}" is no OpenID provider and gives no ID tokens` }
  if (provider.type === 'secret' && (type === 'tokenExchange' || type === 'cloudSts'))
    return { message: `${label}, "${field}": "${wanted}" holds keys, expected a connection of type "oidc" or "oauth2"` }
  return { use: { provider: wanted, kind, issuer: undefined, isExplicit: true, isConnection: true } }
}

/**
 * The server with the upstreams that a login for this route visits: the first identifies the user, the others provide
 * tokens that the route uses.
 */
export function routeAuthServer(server: ResolvedAuthServer, use: UpstreamUse | undefined): RouteAuthServer {
  const providers = upstreamsInOrder(server.spec)
    .map(({ name }) => name)
    .filter((name, index) => index === 0 || name === use?.provider)
  return { server, providers }
}
