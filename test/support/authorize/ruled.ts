import { createAuthorizer, createProtocolMemory } from '../../../src/authorize/index.ts'
import type { Caller, Claims, McpView, RuleDecision } from '../../../src/core/index.ts'
import { authorization } from '../../../src/resources/authorization.ts'
import { createRecordingMetrics } from '../ports.ts'
import { createRoute, type RouteOptions, runtimeOf, startProxy, type Started } from '../proxy/harness.ts'
import type { Sockets } from '../sockets.ts'

/** A verified caller with these claims. */
export const callerWith = (claims: Record<string, unknown>, subject = 'ada'): Caller => ({
  kind: 'authenticated',
  provider: 'p',
  issuer: 'https://idp.example',
  subject,
  identity: `sub:${subject}`,
  claims: claims as Claims,
  expiresAtMs: undefined,
  tokenDigest: `digest-${subject}`,
  format: 'jwt',
})

export interface Ruled extends Started {
  readonly decisions: RuleDecision[]
  /** The evaluated requests. */
  readonly views: McpView[]
  post(body: string | Uint8Array<ArrayBuffer>, headers?: Record<string, string>): Promise<Response>
  /** A JSON-RPC request. */
  rpc(method: string, params?: object, headers?: Record<string, string>): Promise<Response>
}

/** The real proxy with a route whose requests are authorized, before a backend at `origin`. */
export async function startRuled(
  sockets: Sockets,
  origin: string,
  spec: object,
  options: RouteOptions & { readonly limitBytes?: number; readonly claims?: Record<string, unknown> } = {},
): Promise<Ruled> {
  const { claims = {}, limitBytes = 1024 * 1024, ...more } = options
  const decisions: RuleDecision[] = []
  const views: McpView[] = []
  const target = `${origin}/`
  const authorize = createAuthorizer({
    route: 'r',
    authorization: authorization().parse(spec),
    limitBytes,
    metrics: createRecordingMetrics(),
    memory: createProtocolMemory().of('r', target),
    onDecision: (_known, { mcp }, decision) => {
      decisions.push(decision)
      views.push(mcp)
    },
  })
  const route = createRoute(sockets, origin, { caller: () => callerWith(claims), authorize, ...more })
  const proxy = await startProxy(sockets, runtimeOf([route]))
  const post: Ruled['post'] = (body, headers = {}) =>
    fetch(proxy.url, { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } })
  return {
    ...proxy,
    decisions,
    views,
    post,
    rpc: (method, params = {}, headers = {}) =>
      post(JSON.stringify({ jsonrpc: '2.0', id: 7, method, params }), headers),
  }
}
