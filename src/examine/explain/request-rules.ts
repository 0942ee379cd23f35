import { compileRules, readMessage } from '../../authorize/index.ts'
import { type Claims, type ClaimValue, Failure, type RequestView, type RuleDecision } from '../../core/index.ts'
import { compileSelection } from '../../obtain/index.ts'
import type { ResolvedAuth, ResolvedRoute } from '../../resources/index.ts'
import { UsageError } from '../../compose/index.ts'

/** An MCP request as it is written for a case or on a command line. */
export interface DescribedRequest {
  /** Default `tools/call`. */
  readonly method?: string | undefined
  readonly name?: string | undefined
  readonly uri?: string | undefined
  readonly args?: unknown
  readonly annotations?: Readonly<Record<string, boolean>> | undefined
}

/**
 * Reads it as the proxy reads the message of such a request; a task is of no call here. Throws `UsageError` for one that
 * the proxy would refuse.
 */
export function viewOf({ method = 'tools/call', name, uri, args, annotations = {} }: DescribedRequest): RequestView {
  const params = paramsOf(method, { name, uri, args })
  const hints = Object.assign(Object.create(null) as Record<string, ClaimValue>, annotations) as Claims
  try {
    return readMessage(Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })), {
      annotationsOf: () => hints,
      taskOf: () => undefined,
    })
  } catch (error) {
    if (error instanceof Failure)
      throw new UsageError(`the proxy would refuse this request: ${error.detail ?? error.code}`)
    throw error
  }
}

function paramsOf(method: string, { name, uri, args }: Pick<DescribedRequest, 'name' | 'uri' | 'args'>): object {
  if (method === 'completion/complete')
    return { ref: uri === undefined ? { type: 'ref/prompt', name } : { type: 'ref/resource', uri } }
  if (method === 'subscriptions/listen')
    return { notifications: uri === undefined ? {} : { resourceSubscriptions: [uri] } }
  return { name, uri, arguments: args }
}

/** What the rules of a route decide on a request of a caller; undefined where it has none, or where none applies. */
export function decideRules(
  { authorization, name }: Pick<ResolvedRoute, 'authorization' | 'name'>,
  view: RequestView,
  claims: Claims,
  options: { readonly all: boolean },
): RuleDecision | undefined {
  if (authorization === undefined || view.subjects.length === 0) return undefined
  return compileRules(authorization).decideAll(view.subjects, { caller: { claims }, route: name }, options)
}

/**
 * The config whose credential a request of a caller gets, with the position of its entry in `credentials`, from 1. Throws
 * `UsageError` where a condition reaches its limit.
 */
export function credentialFor(
  { auth, credentials, name }: Pick<ResolvedRoute, 'auth' | 'credentials' | 'name'>,
  view: RequestView | undefined,
  claims: Claims,
): { readonly auth: ResolvedAuth; readonly entry: number | undefined } {
  if (view === undefined || credentials.length === 0) return { auth, entry: undefined }
  try {
    const chosen = compileSelection(credentials)({ mcp: view.mcp, claims, route: name })
    if (chosen === undefined) return { auth, entry: undefined }
    return { auth: chosen.auth, entry: credentials.indexOf(chosen) + 1 }
  } catch (error) {
    if (error instanceof Failure && error.code === 'rule_limit')
      throw new UsageError(`the proxy would refuse this request: ${error.detail ?? ''} reaches its limit (rule_limit)`)
    throw error
  }
}
