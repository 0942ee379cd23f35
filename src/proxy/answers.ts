import {
  challengeFor,
  mcpFailureBody,
  metadataUrl,
  oauthFailureBody,
  retryAfterFor,
  stepUpChallengeFor,
} from '../http/index.ts'
import type { Id } from '../mcp/index.ts'
import type { Failure } from '../core/index.ts'
import type { InboundRequest } from './inbound-request.ts'
import { allowedMethods } from './local-handlers.ts'

/** An unread body of up to this size is read away, so that the connection can stay; a larger one costs the connection. */
const DISCARDED_BYTES = 64 * 1024

const METHODS = 'GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS'
const HEADER_NAMES = /^[A-Za-z0-9\-_!#$%&'*+.^`|~, ]{1,4096}$/

/**
 * Sends a failure in the shape of MCP routes, or of OAuth at endpoints of our own (decisions §5): challenge where one is due, Retry-After.
 * Cuts the connection when part of another answer is already out. `closes` ends the connection after it; `id` is the JSON-RPC request's.
 */
export function answerFailure(
  inbound: InboundRequest,
  failure: Failure,
  options: { readonly closes: boolean; readonly id: Id | undefined },
): void {
  const { response, route, localHandler } = inbound
  if (response.headersSent) {
    response.destroy()
    return
  }
  const headers = ['cache-control', 'no-store']
  if (route !== undefined && route.isProtected) {
    const { realm, requiredScopes, resourceUrl } = route
    const resourceMetadata = resourceUrl === undefined ? undefined : metadataUrl(resourceUrl)
    const challenge = challengeFor(failure, { realm, requiredScopes, resourceMetadata })
    // Ours is first: of several, MCP clients read that one.
    for (const one of [challenge, stepUpChallengeFor(failure)])
      if (one !== undefined) headers.push('www-authenticate', one)
  }
  const retryAfter = retryAfterFor(failure)
  if (retryAfter !== undefined) headers.push('retry-after', retryAfter)
  if (failure.status === 405) headers.push('allow', methodsOf(inbound))
  const body = localHandler === undefined ? mcpFailureBody(failure, inbound.id, options.id) : oauthFailureBody(failure)
  answer(inbound, failure.status, 'application/json', body, { headers, closes: options.closes })
}

/** Answers a preflight from an origin that admission let through (Fetch standard, CORS protocol). */
export function answerPreflight(inbound: InboundRequest): void {
  const { request } = inbound
  const asked = request.headers['access-control-request-headers']
  const headers = ['access-control-allow-methods', methodsOf(inbound), 'access-control-max-age', '600']
  // Names of MCP parameters are not known beforehand, so what is asked for is allowed; credentials mode never is.
  if (asked !== undefined && HEADER_NAMES.test(asked)) headers.push('access-control-allow-headers', asked)
  if (request.headers['access-control-request-private-network'] === 'true')
    headers.push('access-control-allow-private-network', 'true')
  answer(inbound, 204, undefined, '', { headers, closes: false })
}

const methodsOf = ({ localHandler }: InboundRequest): string =>
  localHandler === undefined ? METHODS : allowedMethods(localHandler)

function answer(
  inbound: InboundRequest,
  status: number,
  contentType: string | undefined,
  body: Buffer | string,
  options: { readonly headers: readonly string[]; readonly closes: boolean },
): void {
  const { response } = inbound
  const rest = unreadBytes(inbound)
  const headers = [...inbound.responseHeaders, ...options.headers]
  if (contentType !== undefined) {
    headers.push('content-type', contentType, 'content-length', String(Buffer.byteLength(body)))
    headers.push('x-content-type-options', 'nosniff')
  }
  // What was streamed to a backend that stopped reading is no longer read by anybody.
  const isTorn = inbound.request.destroyed && !inbound.request.complete
  if (options.closes || isTorn || rest > DISCARDED_BYTES) headers.push('connection', 'close')
  response.writeHead(status, headers).end(inbound.method === 'HEAD' ? undefined : body)
  inbound.trace?.responded(status, headers)
  if (inbound.trace !== undefined && body !== '') inbound.trace.body(Buffer.from(body))
}

/** Bytes that the client may still send as the body of this request. */
function unreadBytes({ request }: InboundRequest): number {
  if (request.complete || request.destroyed) return 0
  if (request.headers['transfer-encoding'] !== undefined) return Number.POSITIVE_INFINITY
  return Number(request.headers['content-length'] ?? 0)
}
