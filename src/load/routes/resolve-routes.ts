import {
  type AuthSection,
  type Connections,
  type OAuthSection,
  type ResolvedAuth,
  type ResolvedAuthServer,
  type ResolvedCredential,
  type ResolvedRoute,
  upstreamTokenOf,
} from '../../resources/index.ts'
import { remarksOnResource } from './resource-remarks.ts'
import type { DraftRoute } from './draft-route.ts'
import type { Loaded, LocatedAuth } from '../documents/loaded.ts'
import type { Problem } from '../documents/problem.ts'
import { resolveAuth, withoutExternalAuth } from './resolve-auth.ts'
import {
  AuthServers,
  issuerPath,
  loginOnly,
  routeAuthServer,
  type TokenHolders,
  upstreamUse,
} from './resolve-auth-server.ts'
import { routeProblems, routeWarnings } from './route-rules.ts'

interface Inputs {
  readonly drafts: readonly DraftRoute[]
  readonly loaded: Loaded
  readonly namespace: string
  /** Undefined if the ProxyConfig has no `auth`. */
  readonly callers: AuthSection | undefined
  /** The `connections` section of the process. */
  readonly connections?: Connections | undefined
  /** Name of the authorization server of all routes without their own `auth`. */
  readonly authServerName: string | undefined
  readonly isLocal: boolean
  /** `listen.address`, as it is written. */
  readonly address: string
  /** The pods belong to an operator; only the manifest defines their callers. */
  readonly inCluster: boolean
  /** The listener has no URL that could identify a resource. */
  readonly isSocket: boolean
}

interface Findings {
  readonly problems: Problem[]
  readonly warnings: Problem[]
  /** Notes about values derived from elsewhere. */
  readonly notes: Problem[]
}

interface Resolved extends Findings {
  readonly routes: readonly ResolvedRoute[]
  readonly authServers: readonly ResolvedAuthServer[]
  /** A route defines no callers, and there is no default. */
  readonly lacksCallers: boolean
}

/** Resolves external auth, callers and resource URL of draft routes; rule violations are problems of the route. */
export function resolveRoutes(inputs: Inputs): Resolved {
  const findings: Findings = { problems: uniqueAmongAll(inputs.drafts), warnings: [], notes: [] }
  const auths = firstByName(inputs.loaded.auths, inputs.namespace)
  const find = (name: string): LocatedAuth | undefined => auths.get(name)
  const servers = new AuthServers(find)
  const routes: ResolvedRoute[] = []
  const isAlone = inputs.drafts.filter((draft) => draft.ownCallers === undefined).length === 1
  const documents = new Map<string, ResolvedRoute>()
  let lacksCallers = false
  for (const draft of inputs.drafts) {
    const reached = draft.authName === undefined ? undefined : find(draft.authName)
    // An unresolved reference, or a target with problems, was reported when the files were checked.
    if (draft.authName !== undefined && reached === undefined) continue
    const server = servers.of(draft, reached, inputs.authServerName, findings.problems)
    if (draft.hasInvalidCallers === true) continue
    const callers = callersOf(draft, server, inputs, findings)
    // A named server with problems has been reported, too: callers are not missing.
    const namesServer = draft.authServer !== undefined || inputs.authServerName !== undefined
    if (callers === undefined && (server !== undefined || !namesServer)) {
      if (inputs.inCluster) findings.problems.push(draft.problem('auth', NO_CALLERS))
      else lacksCallers = true
    }
    const auth = authOf(draft, reached, inputs, findings)
    if (auth === undefined || callers === undefined) continue
    const credentials = credentialsOf(draft, find, { callers, server }, inputs, findings)
    const route = resolveRoute({ draft, auth, credentials, callers, server, isAlone }, inputs, findings)
    if (route.callers.mode === 'oauth') findings.problems.push(...sharedDocument(draft, route, documents))
    routes.push(route)
  }
  findings.warnings.push(...hiddenPaths(inputs.drafts, servers.all))
  return { ...findings, routes, authServers: servers.all, lacksCallers }
}

/** Required definitions of a manifest that an operator runs. */
const NO_CALLERS =
  'missing, and no other setting defines the callers; expected "oidcConfigRef", "authServerRef", or "auth: {mode: anonymous}" to serve callers without a token'

interface Parts {
  readonly draft: DraftRoute
  readonly auth: ResolvedAuth
  readonly credentials: readonly ResolvedCredential[]
  readonly callers: AuthSection
  readonly server: ResolvedAuthServer | undefined
  /** No other route uses the default callers. */
  readonly isAlone: boolean
}

/** The configs of a namespace by name, the first of each: thousands of routes look them up. */
function firstByName(auths: readonly LocatedAuth[], namespace: string): ReadonlyMap<string, LocatedAuth> {
  const here = auths.filter(({ document }) => document.metadata.namespace === namespace)
  return new Map(here.toReversed().map((auth) => [auth.document.metadata.name, auth]))
}

function resolveRoute(
  { draft, auth, credentials, callers, server, isAlone }: Parts,
  inputs: Inputs,
  findings: Findings,
): ResolvedRoute {
  const upstream = upstreamOf(draft, auth, { server, connections: inputs.connections }, findings)
  const { isLocal, inCluster } = inputs
  const isSingleUser = inputs.connections?.singleUser === true
  const facts = { draft, auth: { ...auth, upstream }, callers, isLocal, inCluster, isSingleUser }
  findings.problems.push(...routeProblems(facts))
  findings.warnings.push(...routeWarnings(facts))
  const resourceUrl = resourceUrlOf(draft, callers, isAlone)
  if (resourceUrl === undefined && callers.mode === 'oauth' && (!inputs.isLocal || inputs.isSocket)) {
    const why = inputs.isSocket ? 'a Unix socket' : 'not loopback'
    const message = `missing, expected the URL of this protected resource, because the bind is ${why}`
    findings.problems.push(draft.problem('resourceUrl', message))
  }
  // Derived values are checked where they are written.
  if (draft.resourceUrl !== undefined && callers.mode === 'oauth') {
    const place = { path: draft.settings.path, address: inputs.address, isLocal: inputs.isLocal }
    for (const remark of remarksOnResource(draft.resourceUrl, place))
      findings.warnings.push(draft.problem('resourceUrl', remark))
  }
  return {
    ...draft.settings,
    auth: facts.auth,
    credentials,
    callers: withResource(callers, resourceUrl),
    authServer: server === undefined ? undefined : routeAuthServer(server, upstream),
    resourceUrl,
  }
}

/** The section with its protected resource, unless it names one. */
const withResource = (callers: AuthSection, resourceUrl = ''): AuthSection =>
  callers.mode === 'oauth' && callers.oauth.resourceUrl === ''
    ? { mode: 'oauth', oauth: { ...callers.oauth, resourceUrl } }
    : callers

/** The callers of a route: its own section, else the default; without both, users of its authorization server. */
function callersOf(
  draft: DraftRoute,
  server: ResolvedAuthServer | undefined,
  { callers: inherited }: Inputs,
  { problems }: Findings,
): AuthSection | undefined {
  const callers = draft.ownCallers ?? inherited
  if (server === undefined) return callers
  if (draft.ownCallers?.mode === 'anonymous') {
    const message = `callers are anonymous here, and callers log in to "${server.name}"; expected one of the two`
    problems.push(draft.problem('auth', message))
  }
  return callers?.mode === 'oauth' ? withoutOwnIssuer(callers, server) : loginOnly()
}

/**
 * A provider that is the route's own authorization server is resolved in this process: its keys are not fetched over
 * the network. One that restricts the subject is kept.
 */
function withoutOwnIssuer(callers: OAuthSection, { spec: { issuer } }: ResolvedAuthServer): OAuthSection {
  const isOwn = (url: string): boolean => url.replace(/\/$/, '') === issuer.replace(/\/$/, '')
  const providers = callers.oauth.providers.filter(
    ({ issuerUrl, subject }) => !isOwn(issuerUrl) || subject !== undefined,
  )
  return providers.length === callers.oauth.providers.length
    ? callers
    : { mode: 'oauth', oauth: { ...callers.oauth, providers } }
}

function authOf(
  draft: DraftRoute,
  reached: LocatedAuth | undefined,
  { namespace }: Inputs,
  { problems }: Findings,
): ResolvedAuth | undefined {
  if (reached === undefined) return withoutExternalAuth(draft.settings.name, namespace, draft.source)
  const result = resolveAuth(reached)
  if ('auth' in result) return result.auth
  problems.push(draft.problem('externalAuthConfigRef', result.message, { reason: result.reason }))
  return undefined
}

/** The credentials for some requests; each must satisfy the rules of a route with it. */
function credentialsOf(
  draft: DraftRoute,
  find: (name: string) => LocatedAuth | undefined,
  { callers, server }: { readonly callers: AuthSection; readonly server: ResolvedAuthServer | undefined },
  inputs: Inputs,
  findings: Findings,
): readonly ResolvedCredential[] {
  return (draft.credentials ?? []).flatMap(({ externalAuthConfigRef, ...request }) => {
    const reached = find(externalAuthConfigRef.name)
    // An unresolved reference has been reported with those of its document.
    if (reached === undefined) return []
    const own: DraftRoute = {
      ...draft,
      problem: (field, message, options) =>
        draft.problem(field === 'externalAuthConfigRef' ? 'credentials' : field, message, options),
    }
    const auth = authOf(own, reached, inputs, findings)
    if (auth === undefined) return []
    const upstream = upstreamOf(own, auth, { server, connections: inputs.connections }, findings)
    const { isLocal, inCluster } = inputs
    const isSingleUser = inputs.connections?.singleUser === true
    const facts = { draft: own, auth: { ...auth, upstream }, callers, isLocal, inCluster, isSingleUser }
    for (const { message } of routeProblems(facts))
      findings.problems.push(draft.problem('credentials', `"${auth.name}": ${message}`))
    return [{ ...request, when: request.when, auth: facts.auth }]
  })
}

function upstreamOf(
  draft: DraftRoute,
  auth: ResolvedAuth,
  { server, connections }: TokenHolders,
  { problems, warnings, notes }: Findings,
): ResolvedAuth['upstream'] {
  const result = upstreamUse(auth, { server, connections })
  if ('message' in result) {
    problems.push(draft.problem('externalAuthConfigRef', result.message))
    return undefined
  }
  const { use } = result
  if (use?.isConnection === true) return use
  if (use !== undefined && use.issuer === undefined) {
    const message = `no caller has a token of the upstream provider "${use.provider}", because callers of this route log in elsewhere: each request fails with no_session`
    warnings.push(draft.problem('externalAuthConfigRef', message))
  } else if (use !== undefined && !use.isExplicit) {
    const message = `"${upstreamTokenOf(auth)?.field}" is "${use.provider}" for callers who log in here, the first upstream provider of "${server?.name}"`
    notes.push(draft.problem('externalAuthConfigRef', message))
  }
  return use
}

/** Backend paths hidden by an authorization server (authserver.md §2.1). */
function hiddenPaths(drafts: readonly DraftRoute[], servers: readonly ResolvedAuthServer[]): Problem[] {
  return servers.flatMap((server) => {
    const hidden = `${issuerPath(server)}/oauth`
    return drafts
      .filter(({ settings: { path, exactTarget } }) => !exactTarget && isBelow(hidden, path))
      .map((draft) =>
        draft.problem('path', `"${hidden}" below this path belongs to "${server.name}" and is not forwarded`),
      )
  })
}

const isBelow = (path: string, prefix: string): boolean =>
  prefix === '/' || path === prefix || path.startsWith(`${prefix}/`)

/** Protected resource metadata is found by path alone (RFC 9728 §3.1): two hosts with one path would conflict. */
function sharedDocument(draft: DraftRoute, route: ResolvedRoute, documents: Map<string, ResolvedRoute>): Problem[] {
  const url = URL.parse(route.resourceUrl ?? '')
  if (url === null) return []
  const place = url.pathname + url.search
  const earlier = documents.get(place)
  if (earlier === undefined) documents.set(place, route)
  if (earlier?.resourceUrl === undefined || new URL(earlier.resourceUrl).origin === url.origin) return []
  const message = `routes "${earlier.name}" and "${route.name}" are on different hosts and share the path "${place}", where only one RFC 9728 document can be; expected another path, or a process for each host`
  return [draft.problem('resourceUrl', message)]
}

/** The document check makes routes of a ProxyConfig unique; this adds the routes of manifests. */
function uniqueAmongAll(drafts: readonly DraftRoute[]): Problem[] {
  const problems: Problem[] = []
  for (const field of ['name', 'path'] as const) {
    const first = new Map<string, DraftRoute>()
    for (const draft of drafts) {
      const value = draft.settings[field]
      const earlier = first.get(value)
      if (earlier === undefined) first.set(value, draft)
      else if (draft.origin !== 'ProxyConfig') {
        const where = `${earlier.source.file}:${earlier.source.line}`
        problems.push(
          draft.problem(
            field,
            `the route of this manifest has the ${field} "${value}", which another route has (${where})`,
          ),
        )
      }
    }
  }
  return problems
}

/**
 * The protected resource of a route: its own URL; else that of its `auth` section, or of the shared section if it is
 * the only route under it; manifests append their path to the shared one (decisions §2.7). Never derived from a
 * request.
 */
function resourceUrlOf(draft: DraftRoute, callers: AuthSection, isAlone: boolean): string | undefined {
  if (draft.resourceUrl !== undefined || callers.mode === 'anonymous') return draft.resourceUrl
  // A manifest or an authorization server may admit callers without naming a resource.
  if (callers.oauth.resourceUrl === '') return undefined
  if (draft.ownCallers !== undefined) return callers.oauth.resourceUrl
  if (isAlone) return callers.oauth.resourceUrl
  if (draft.origin === 'ProxyConfig') return undefined
  return `${callers.oauth.resourceUrl.replace(/\/$/, '')}${draft.settings.path}`
}
