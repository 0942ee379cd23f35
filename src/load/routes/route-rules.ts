import {
  type AuthSection,
  credentialOf,
  forwardedNames,
  headersSetBy,
  remarksOnAudience,
  remarksOnRules,
  remarksOnTarget,
  type ResolvedAuth,
} from '../../resources/index.ts'
import { plainHeaderName } from '../../core/index.ts'
import type { DraftRoute } from './draft-route.ts'
import { judgePlainHttp } from '../../fields/index.ts'
import type { Problem } from '../documents/problem.ts'

/** Inputs for the rules of one route. */
export interface RouteFacts {
  readonly draft: DraftRoute
  readonly auth: ResolvedAuth
  readonly callers: AuthSection
  /** The bind is a loopback address or a Unix socket. */
  readonly isLocal: boolean
  /** The pods belong to an operator. */
  readonly inCluster: boolean
  /** Connections belong to the local user, for all callers. */
  readonly isSingleUser: boolean
}

/** Rules between a route, its external auth, its callers and the bind (decisions §2.1); each returns its problems. */
const RULES: readonly ((facts: RouteFacts) => Problem[])[] = [
  anonymousCallers,
  openPaths,
  scopesNeedCallers,
  forwardedTwice,
  rulesNeedMessages,
]

const forwardedBy = ({ settings }: DraftRoute): readonly string[] => forwardedNames(settings.headerForward)

/** Whether the proxy adds a credential to requests of the route. */
const addsCredential = ({ auth, draft }: Pick<RouteFacts, 'auth' | 'draft'>): boolean =>
  headersSetBy(auth).length > 0 || forwardedBy(draft).length > 0

/** All rule violations of this route. */
export const routeProblems = (facts: RouteFacts): Problem[] => RULES.flatMap((rule) => rule(facts))

/**
 * Anonymous callers never get a per-caller credential, and get the service credential only if no other machine can
 * call.
 */
function anonymousCallers(facts: RouteFacts): Problem[] {
  const { draft, auth, callers, isLocal, inCluster } = facts
  if (callers.mode !== 'anonymous' || !addsCredential(facts)) return []
  if (auth.upstream?.isConnection === true) return anonymousConnection(facts)
  if (credentialOf(auth) === 'caller') {
    const expected = inCluster ? '"oidcConfigRef" or "authServerRef"' : 'an "auth" section of mode "oauth"'
    const message = `type "${auth.type}" needs to know the caller, and callers are anonymous here; expected ${expected}`
    return [draft.problem('externalAuthConfigRef', message)]
  }
  if (isLocal || draft.settings.insecureAllowAnonymous) return []
  const message = inCluster
    ? `callers are anonymous, so anyone who reaches the Service could use this credential; expected "oidcConfigRef" or "authServerRef", or "insecureAllowAnonymous: true" behind a gateway that authenticates`
    : `callers are anonymous and the bind is not loopback, so anyone on the network could use this credential; expected an "auth" section, a loopback or unix: address, or "insecureAllowAnonymous: true"`
  return [draft.problem(placeOfCredential(facts), message)]
}

/** Types that send the credential of a connection as it is. */
const SENT_AS_IS: ReadonlySet<string> = new Set(['upstreamInject', 'headerInjection', 'bearerToken'])

/** A connection belongs to a caller, except on a machine with one user. */
function anonymousConnection({ draft, auth, isSingleUser }: RouteFacts): Problem[] {
  if (isSingleUser && SENT_AS_IS.has(auth.type)) return []
  const message = isSingleUser
    ? `type "${auth.type}" needs to know the caller, and callers are anonymous here; expected "auth", or a type that sends the credential as it is`
    : 'a connection belongs to a caller, and callers are anonymous here; expected "auth" of mode "oauth", or "connections.singleUser" on a loopback or Unix-socket bind'
  return [draft.problem('externalAuthConfigRef', message)]
}

/** The source of the credential: the type, or else the headers beside it. */
const placeOfCredential = ({ auth }: Pick<RouteFacts, 'auth'>): 'externalAuthConfigRef' | 'headerForward' =>
  headersSetBy(auth).length > 0 ? 'externalAuthConfigRef' : 'headerForward'

/** A header set by the type cannot be forwarded as well: only one of the two would be sent. */
function forwardedTwice({ draft, auth }: RouteFacts): Problem[] {
  const own = new Set(headersSetBy(auth).map(({ name }) => plainHeaderName(name)))
  return forwardedBy(draft)
    .filter((name) => own.has(plainHeaderName(name)))
    .map((name) => {
      const message = `"${name}" is set by type "${auth.type}" already; expected another header, or none`
      return draft.problem('headerForward', message)
    })
}

/** A path without authentication must not get a credential. */
function openPaths(facts: RouteFacts): Problem[] {
  const { draft, auth, callers } = facts
  if (callers.mode === 'anonymous' || callers.oauth.publicPaths.length === 0 || !addsCredential(facts)) return []
  const has = headersSetBy(auth).length > 0 ? `"${auth.type}"` : '"headerForward"'
  const message = `"publicPaths" are only allowed on routes of type "unauthenticated", this one has ${has}`
  return [draft.problem('auth', message)]
}

function scopesNeedCallers({ draft, callers }: RouteFacts): Problem[] {
  if (callers.mode !== 'anonymous' || draft.settings.requiredScopes.length === 0) return []
  return [
    draft.problem('requiredScopes', 'callers are anonymous here and have no scopes, expected none or mode "oauth"'),
  ]
}

/** Rules inspect the messages of callers, which are invisible on an upgraded connection. */
function rulesNeedMessages({ draft, callers }: RouteFacts): Problem[] {
  const { authorization, allowUpgrade } = draft.settings
  if (authorization === undefined) return []
  const problems: Problem[] = []
  if (allowUpgrade) {
    const message =
      'messages of an upgraded connection are not evaluated, expected "allowUpgrade: false" or no "authorization"'
    problems.push(draft.problem('authorization', message))
  }
  const scoped = authorization.rules.find(({ requireScopes }) => requireScopes.length > 0)
  if (callers.mode === 'anonymous' && scoped !== undefined) {
    const message = `"requireScopes" of "${scoped.name}": callers are anonymous here and have no scopes`
    problems.push(draft.problem('authorization', message))
  }
  return problems
}

/** Allowed but questionable settings of this route. */
export function routeWarnings(facts: RouteFacts): Problem[] {
  const { draft, auth, callers, isLocal } = facts
  const found: Problem[] = []
  const { target, targetTls, insecureAllowAnonymous } = draft.settings
  if (addsCredential(facts) && judgePlainHttp(`${target.origin}/`, false) !== 'fine') {
    found.push(draft.problem('target', 'the credential goes to this backend over plain http'))
  }
  const { hostname } = new URL(target.origin)
  for (const remark of remarksOnTarget(auth, hostname))
    found.push(draft.problem('target', `${remark}; see "${auth.name}"`))
  if (callers.mode === 'oauth' && auth.upstream?.isExplicit !== true)
    for (const { audience } of callers.oauth.providers)
      for (const remark of remarksOnAudience(auth, audience))
        found.push(draft.problem('externalAuthConfigRef', `${remark}; see "${auth.name}"`))
  if (targetTls?.insecureSkipVerify === true) {
    found.push(draft.problem('target', '"insecureSkipVerify" is set: any server can pose as this backend'))
  }
  const { authorization } = draft.settings
  if (authorization !== undefined)
    for (const { index, message } of remarksOnRules(authorization)) {
      const { name } = authorization.rules[index] ?? { name: '' }
      found.push(draft.problem('authorization', `rule "${name}": ${message}`))
    }
  if (insecureAllowAnonymous && callers.mode === 'anonymous' && !isLocal) {
    found.push(
      draft.problem(
        placeOfCredential(facts),
        '"insecureAllowAnonymous" is set: anyone on the network can use this credential',
      ),
    )
  }
  return found
}
