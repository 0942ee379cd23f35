import {
  type AuthSection,
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
import { AuthServers, issuerPath, loginOnly, routeAuthServer, upstreamUse } from './resolve-auth-server.ts'
import { routeProblems, routeWarnings } from './route-rules.ts'

interface Inputs {
  readonly drafts: readonly DraftRoute[]
  readonly loaded: Loaded
  readonly namespace: string
  /** Undefined when the ProxyConfig has no `auth`. */
  readonly callers: AuthSection | undefined
  /** Name of the authorization server of all routes without an `auth` of their own. */
  readonly authServerName: string | undefined
  readonly isLocal: boolean
  /** `listen.address`, as it is written. */
  readonly address: string
  /** An operator makes the pods, whose callers nothing but the manifest names. */
  readonly inCluster: boolean
  /** The bind has no URL of its own that could name a resource. */
  readonly isSocket: boolean
}

interface Findings {
  readonly problems: Problem[]
  readonly warnings: Problem[]
  /** What was filled in where the files leave it open. */
  readonly notes: Problem[]
}

interface Resolved extends Findings {
  readonly routes: readonly ResolvedRoute[]
  readonly authServers: readonly ResolvedAuthServer[]
  /** A route says nothing of its callers, and there is no default. */
  readonly lacksCallers: boolean
}

/** Draft routes with their external auth, callers and resource URL; what breaks a rule is a problem of that route. */
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
    // A reference that leads nowhere, or to a document with problems, has been told about when the files were checked.
    if (draft.authName !== undefined && reached === undefined) continue
    const server = servers.of(draft, reached, inputs.authServerName, findings.problems)
    if (draft.hasInvalidCallers === true) continue
    const callers = callersOf(draft, server, inputs, findings)
    // A server that is named and has problems has been told about, too: callers are not what is missing.
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

/** What a manifest that an operator runs has to say. */
const NO_CALLERS =
  'missing, and nothing else says who may call; expected "oidcConfigRef", "authServerRef", or "auth: {mode: anonymous}" to serve callers without a token'

interface Parts {
  readonly draft: DraftRoute
  readonly auth: ResolvedAuth
  readonly credentials: readonly ResolvedCredential[]
  readonly callers: AuthSection
  readonly server: ResolvedAuthServer | undefined
  /** No other route has its callers from the default. */
  readonly isAlone: boolean
}

/** The configs of a namespace by their names, of which the first counts: thousands of routes look for theirs. */
function firstByName(auths: readonly LocatedAuth[], namespace: string): ReadonlyMap<string, LocatedAuth> {
  const here = auths.filter(({ document }) => document.metadata.namespace === namespace)
  return new Map(here.toReversed().map((auth) => [auth.document.metadata.name, auth]))
}

function resolveRoute(
  { draft, auth, credentials, callers, server, isAlone }: Parts,
  inputs: Inputs,
  findings: Findings,
): ResolvedRoute {
  const upstream = upstreamOf(draft, auth, server, findings)
  const { isLocal, inCluster } = inputs
  const facts = { draft, auth: { ...auth, upstream }, callers, isLocal, inCluster }
  findings.problems.push(...routeProblems(facts))
  findings.warnings.push(...routeWarnings(facts))
  const resourceUrl = resourceUrlOf(draft, callers, isAlone)
  if (resourceUrl === undefined && callers.mode === 'oauth' && (!inputs.isLocal || inputs.isSocket)) {
    const why = inputs.isSocket ? 'a Unix socket' : 'not loopback'
    const message = `missing, expected the URL of this protected resource, because the bind is ${why}`
    findings.problems.push(draft.problem('resourceUrl', message))
  }
  // What was filled in from elsewhere is somebody else's to say.
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

/** The section with the resource that it protects, where it does not say so itself. */
const withResource = (callers: AuthSection, resourceUrl = ''): AuthSection =>
  callers.mode === 'oauth' && callers.oauth.resourceUrl === ''
    ? { mode: 'oauth', oauth: { ...callers.oauth, resourceUrl } }
    : callers

/** Who may call a route: its own section, else the default; where there is none, who logs in at its authorization server. */
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
 * A provider that is the authorization server of the route is answered in this process: its keys are not fetched from the
 * URL of the proxy itself. One that restricts the subject stays.
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

/** The credentials for some requests, each held to the rules of a route of its own with it. */
function credentialsOf(
  draft: DraftRoute,
  find: (name: string) => LocatedAuth | undefined,
  { callers, server }: { readonly callers: AuthSection; readonly server: ResolvedAuthServer | undefined },
  inputs: Inputs,
  findings: Findings,
): readonly ResolvedCredential[] {
  return (draft.credentials ?? []).flatMap(({ externalAuthConfigRef, ...request }) => {
    const reached = find(externalAuthConfigRef.name)
    // A reference that leads nowhere has been reported with the references of its document.
    if (reached === undefined) return []
    const own: DraftRoute = {
      ...draft,
      problem: (field, message, options) =>
        draft.problem(field === 'externalAuthConfigRef' ? 'credentials' : field, message, options),
    }
    const auth = authOf(own, reached, inputs, findings)
    if (auth === undefined) return []
    const upstream = upstreamOf(own, auth, server, findings)
    const { isLocal, inCluster } = inputs
    const facts = { draft: own, auth: { ...auth, upstream }, callers, isLocal, inCluster }
    for (const { message } of routeProblems(facts))
      findings.problems.push(draft.problem('credentials', `"${auth.name}": ${message}`))
    return [{ ...request, when: request.when, auth: facts.auth }]
  })
}

function upstreamOf(
  draft: DraftRoute,
  auth: ResolvedAuth,
  server: ResolvedAuthServer | undefined,
  { problems, warnings, notes }: Findings,
): ResolvedAuth['upstream'] {
  const result = upstreamUse(auth, server)
  if ('message' in result) {
    problems.push(draft.problem('externalAuthConfigRef', result.message))
    return undefined
  }
  const { use } = result
  if (use !== undefined && use.issuer === undefined) {
    const message = `nobody has a token of the upstream provider "${use.provider}", because callers of this route log in elsewhere: each request is answered with no_session`
    warnings.push(draft.problem('externalAuthConfigRef', message))
  } else if (use !== undefined && !use.isExplicit) {
    const message = `"${upstreamTokenOf(auth)?.field}" is "${use.provider}" for callers who log in here, the first upstream provider of "${server?.name}"`
    notes.push(draft.problem('externalAuthConfigRef', message))
  }
  return use
}

/** Paths of the backends that requests no longer reach, because an authorization server is there (authserver.md §2.1). */
function hiddenPaths(drafts: readonly DraftRoute[], servers: readonly ResolvedAuthServer[]): Problem[] {
  return servers.flatMap((server) => {
    const hidden = `${issuerPath(server)}/oauth`
    return drafts
      .filter(({ settings: { path, exactTarget } }) => !exactTarget && isBelow(hidden, path))
      .map((draft) =>
        draft.problem('path', `"${hidden}" below this path belongs to "${server.name}" and is not sent on`),
      )
  })
}

const isBelow = (path: string, prefix: string): boolean =>
  prefix === '/' || path === prefix || path.startsWith(`${prefix}/`)

/** The document about a protected resource is found by the path alone (RFC 9728 §3.1): two hosts would take it from each other. */
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

/** Routes of a ProxyConfig are unique among themselves by the check of the document; here those of manifests join. */
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
 * The protected resource of a route: its own URL; else the one of its own `auth` section, or of the shared section when
 * it is the only route under it; manifests take their path below the shared one (decisions §2.7). Never from a request.
 */
function resourceUrlOf(draft: DraftRoute, callers: AuthSection, isAlone: boolean): string | undefined {
  if (draft.resourceUrl !== undefined || callers.mode === 'anonymous') return draft.resourceUrl
  // A manifest or an authorization server lets callers in without a word about the resource.
  if (callers.oauth.resourceUrl === '') return undefined
  if (draft.ownCallers !== undefined) return callers.oauth.resourceUrl
  if (isAlone) return callers.oauth.resourceUrl
  if (draft.origin === 'ProxyConfig') return undefined
  return `${callers.oauth.resourceUrl.replace(/\/$/, '')}${draft.settings.path}`
}
