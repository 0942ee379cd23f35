import type { AuthSection } from './auth-section.ts'
import type { DraftRoute } from './draft-route.ts'
import type { Loaded, LocatedAuth } from './loaded.ts'
import type { Problem } from './problem.ts'
import { resolveAuth, withoutExternalAuth } from './resolve-auth.ts'
import type { ResolvedAuth, ResolvedRoute } from './resolved.ts'
import { routeProblems, routeWarnings } from './route-rules.ts'

interface Inputs {
  readonly drafts: readonly DraftRoute[]
  readonly loaded: Loaded
  readonly namespace: string
  /** Undefined when the ProxyConfig has no `auth`, because each of its routes has one. */
  readonly callers: AuthSection | undefined
  readonly isLocal: boolean
  /** The bind has no URL of its own that could name a resource. */
  readonly isSocket: boolean
}

interface Resolved {
  readonly routes: ResolvedRoute[]
  readonly problems: Problem[]
  readonly warnings: Problem[]
}

/** Draft routes with their external auth, callers and resource URL; what breaks a rule is a problem of that route. */
export function resolveRoutes(inputs: Inputs): Resolved {
  const resolved: Resolved = { routes: [], problems: uniqueAmongAll(inputs.drafts), warnings: [] }
  const documents = new Map<string, ResolvedRoute>()
  for (const draft of inputs.drafts) {
    const callers = draft.ownCallers ?? inputs.callers
    if (callers === undefined) {
      resolved.problems.push(
        draft.problem('auth', 'nothing says who may call this route, expected "auth" in the ProxyConfig'),
      )
      continue
    }
    const auth = authOf(draft, inputs, resolved.problems)
    if (auth === undefined) continue
    const facts = { draft, auth, callers, isLocal: inputs.isLocal }
    resolved.problems.push(...routeProblems(facts))
    resolved.warnings.push(...routeWarnings(facts))
    const resourceUrl = resourceUrlOf(draft, callers, inputs)
    if (resourceUrl === undefined && callers.mode === 'oauth' && (!inputs.isLocal || inputs.isSocket)) {
      resolved.problems.push(
        draft.problem(
          'resourceUrl',
          `missing, expected the URL of this protected resource, because the bind is ${inputs.isSocket ? 'a Unix socket' : 'not loopback'}`,
        ),
      )
    }
    const route = { ...draft.settings, auth, callers, resourceUrl }
    if (callers.mode === 'oauth') resolved.problems.push(...sharedDocument(draft, route, documents))
    resolved.routes.push(route)
  }
  return resolved
}

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

function authOf(draft: DraftRoute, { loaded, namespace }: Inputs, problems: Problem[]): ResolvedAuth | undefined {
  const find = (name: string): LocatedAuth | undefined =>
    loaded.auths.find(({ document: { metadata } }) => metadata.name === name && metadata.namespace === namespace)
  if (draft.authServerName !== undefined) {
    const server = find(draft.authServerName)
    const where = server === undefined ? '' : ` (${server.file}:${server.line})`
    const message = `"authServerRef" names "${draft.authServerName}"${where}: this version loads embedded authorization servers but can not run them yet`
    problems.push(draft.problem('externalAuthConfigRef', message, { reason: 'type_not_runnable' }))
    return undefined
  }
  if (draft.authName === undefined) return withoutExternalAuth(draft.settings.name, namespace, draft.source)
  const located = find(draft.authName)
  // A reference that leads nowhere, or to a document with problems, has been told about when the files were checked.
  if (located === undefined) return undefined
  const result = resolveAuth(located)
  if ('auth' in result) return result.auth
  problems.push(draft.problem('externalAuthConfigRef', result.message, { reason: result.reason }))
  return undefined
}

/**
 * The protected resource of a route: its own URL; else the one of its own `auth` section, or of the shared section when
 * it is the only route under it; manifests take their path below the shared one (decisions §2.7). Never from a request.
 */
function resourceUrlOf(draft: DraftRoute, callers: AuthSection, inputs: Inputs): string | undefined {
  if (draft.resourceUrl !== undefined || callers.mode === 'anonymous') return draft.resourceUrl
  if (draft.ownCallers !== undefined) return callers.oauth.resourceUrl
  const sharing = inputs.drafts.filter((other) => other.ownCallers === undefined)
  if (sharing.length === 1) return callers.oauth.resourceUrl
  if (draft.origin === 'ProxyConfig') return undefined
  return `${callers.oauth.resourceUrl.replace(/\/$/, '')}${draft.settings.path}`
}
