import path from 'node:path'
import { type Loaded, type Located, type LocatedAuth, type Problem, resolveAuth } from '../../load/index.ts'
import {
  hasRoles,
  type ResolvedAuthOf,
  type ResolvedRoute,
  type RoleCase,
  type RoleTest,
} from '../../resources/index.ts'
import { callerOfClaimsText, callerOfToken, type ExplainedCaller } from '../explain/explain-input.ts'
import type { RequestView } from '../../core/index.ts'
import { credentialFor, viewOf } from '../explain/request-rules.ts'
import { type Io, UsageError } from '../../compose/index.ts'

/** A case with everything it refers to. */
export interface ReadyCase {
  /** Name of the document. */
  readonly suite: string
  readonly file: string
  /** Line of the case, from 1. */
  readonly line: number
  readonly name: string
  /** The config that chooses the role; undefined for rules of a route without roles. */
  readonly auth: ResolvedAuthOf<'cloudSts'> | undefined
  /** Undefined if the case names a config. */
  readonly route: ResolvedRoute | undefined
  readonly onMatcherError: ResolvedRoute['onMatcherError']
  readonly caller: ExplainedCaller
  readonly request: RequestView | undefined
  readonly expect: RoleCase['expect']
}

export interface CaseSources {
  readonly loaded: Loaded
  /** Routes of the proxy; undefined if no case names a route. */
  readonly routes: readonly ResolvedRoute[] | undefined
}

/** Resolves all cases of all documents in order, with the problems of invalid ones. */
export async function readyCases(
  sources: CaseSources,
  io: Io,
): Promise<{ readonly cases: readonly ReadyCase[]; readonly problems: readonly Problem[] }> {
  const cases: ReadyCase[] = []
  const problems: Problem[] = []
  for (const located of sources.loaded.roleTests) {
    const { metadata, spec } = located.document
    for (const [index, each] of spec.cases.entries()) {
      const at = ['spec', 'cases', index]
      const subject = subjectOf(each, sources, metadata.namespace)
      if ('message' in subject) {
        problems.push(located.problem([...at, each.route === undefined ? 'config' : 'route'], subject.message))
        continue
      }
      try {
        const { line } = located.problem(at, '')
        const caller = await callerOf(each, located, io)
        const name = each.name ?? `case ${index + 1}`
        const request = each.mcp && viewOf(each.mcp)
        const about = { suite: metadata.name, file: located.file, line, name }
        const auth = request === undefined ? subject.auth : authOf(each, subject, request, caller)
        if (auth !== undefined && 'message' in auth) problems.push(located.problem([...at, 'route'], auth.message))
        else cases.push({ ...about, ...subject, auth, caller, request, expect: each.expect })
      } catch (error) {
        if (!(error instanceof UsageError)) throw error
        const field = error.message.startsWith('the proxy would refuse') ? 'mcp' : 'claims'
        problems.push(located.problem([...at, each.token === undefined ? field : 'token'], error.message))
      }
    }
  }
  return { cases, problems }
}

type Subject = Pick<ReadyCase, 'auth' | 'route' | 'onMatcherError'>

function subjectOf(
  { route: routeName, config, mcp }: RoleCase,
  sources: CaseSources,
  namespace: string,
): Subject | { readonly message: string } {
  if (routeName !== undefined) {
    const routes = sources.routes ?? []
    const route = routes.find(({ name }) => name === routeName)
    if (route === undefined)
      return { message: `no such route, expected one of ${routes.map(({ name }) => name).join(', ')}` }
    const { auth, onMatcherError } = route
    // Which config decides depends on the request.
    if (mcp !== undefined) return { auth: undefined, route, onMatcherError }
    return hasRoles(auth) ? { auth, route, onMatcherError } : { message: rolesOnly(auth.name, auth.type) }
  }
  const found = sources.loaded.auths.find(
    ({ document: { metadata } }) => metadata.name === config && metadata.namespace === namespace,
  )
  if (found === undefined)
    return { message: `no such MCPExternalAuthConfig, expected one of ${namesIn(sources.loaded, namespace)}` }
  const resolved = resolveCloudSts(found)
  return 'message' in resolved ? resolved : { auth: resolved, route: undefined, onMatcherError: 'skip' }
}

/** The config that chooses the role of a request; undefined where none does and none is expected. */
function authOf(
  { expect }: RoleCase,
  subject: Subject,
  request: RequestView,
  { claims }: ExplainedCaller,
): Subject['auth'] | { readonly message: string } {
  if (subject.route === undefined) return subject.auth
  const { auth } = credentialFor(subject.route, request, claims)
  if (hasRoles(auth)) return auth
  const needsRole = [expect.role, expect.reason, expect.sessionName].some((one) => one !== undefined)
  return needsRole ? { message: rolesOnly(auth.name, auth.type) } : undefined
}

/** The config as the proxy resolves it, or why it has no roles. */
export function resolveCloudSts(located: LocatedAuth): ResolvedAuthOf<'cloudSts'> | { readonly message: string } {
  const { metadata, spec } = located.document
  if (spec.type !== 'cloudSts') return { message: rolesOnly(metadata.name, spec.type) }
  const result = resolveAuth(located)
  if ('message' in result) return { message: result.message }
  return hasRoles(result.auth) ? result.auth : { message: rolesOnly(metadata.name, result.auth.type) }
}

const rolesOnly = (name: string, type: string): string =>
  type === 'cloudSts'
    ? `"${name}" signs with the identity of the process ("signAs: service") and has no roles`
    : `"${name}" has type "${type}", which has no roles; expected one of type "cloudSts"`

const namesIn = ({ auths }: Loaded, namespace: string): string =>
  auths
    .filter(({ document }) => document.metadata.namespace === namespace && document.spec.type === 'cloudSts')
    .map(({ document }) => document.metadata.name)
    .join(', ') || '(none of type cloudSts is loaded)'

function callerOf(each: RoleCase, { file }: Located<RoleTest>, io: Io): ExplainedCaller | Promise<ExplainedCaller> {
  if (each.token !== undefined) return callerOfToken(path.resolve(path.dirname(file), each.token), io)
  // As JSON, so that the limits for claims of a token apply.
  return callerOfClaimsText(JSON.stringify(each.claims), 'this', each.format)
}
