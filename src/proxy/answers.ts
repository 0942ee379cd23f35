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

/** Unread bodies up to this size are discarded, to keep the connection; a larger one closes it. */
const DISCARDED_BYTES = 64 * 1024

const JSON_HEADERS = {
  'cache-control': 'no-store',
  'content-type': 'application/json',
  'x-content-type-options': 'nosniff',
}
const METHODS = 'GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS'
const HEADER_NAMES = /^[A-Za-z0-9\-_!#$%&'*+.^`|~, ]{1,4096}$/

/**
 * Sends a failure in the shape of MCP routes, of OAuth at local endpoints (decisions §5), or as the endpoint's own
 * content, with challenge and Retry-After as needed. Aborts the connection if part of another response was sent. `closes` closes the connection
 * afterwards; `id` is the JSON-RPC request's.
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
  const content = localHandler?.failureContent?.(failure, inbound.id) ?? jsonContent(inbound, failure, options.id)
  const headers = Object.entries(content.headers).flat()
  if (route !== undefined && route.isProtected) {
    const { realm, requiredScopes, resourceUrl } = route
    const resourceMetadata = resourceUrl === undefined ? undefined : metadataUrl(resourceUrl)
    const challenge = challengeFor(failure, { realm, requiredScopes, resourceMetadata })
    // The proxy's challenge is first, because MCP clients read only the first one.
    for (const one of [challenge, stepUpChallengeFor(failure)])
      if (one !== undefined) headers.push('www-authenticate', one)
  }
  const retryAfter = retryAfterFor(failure)
  if (retryAfter !== undefined) headers.push('retry-after', retryAfter)
  if (failure.status === 405) headers.push('allow', methodsOf(inbound))
  answer(inbound, failure.status, content.body, { headers, closes: options.closes })
}

function jsonContent({ id: requestId, localHandler }: InboundRequest, failure: Failure, id: Id | undefined) {
  const body = localHandler === undefined ? mcpFailureBody(failure, requestId, id) : oauthFailureBody(failure)
  return { headers: JSON_HEADERS, body }
}

/** Answers a preflight of an allowed origin (Fetch standard, CORS protocol). */
export function answerPreflight(inbound: InboundRequest): void {
  const { request } = inbound
  const asked = request.headers['access-control-request-headers']
  const headers = ['access-control-allow-methods', methodsOf(inbound), 'access-control-max-age', '600']
  // Names of MCP parameter headers are not known in advance, so requested headers are allowed; credentials mode never
  // is.
  if (asked !== undefined && HEADER_NAMES.test(asked)) headers.push('access-control-allow-headers', asked)
  if (request.headers['access-control-request-private-network'] === 'true')
    headers.push('access-control-allow-private-network', 'true')
  answer(inbound, 204, '', { headers, closes: false })
}

const methodsOf = ({ localHandler }: InboundRequest): string =>
  localHandler === undefined ? METHODS : allowedMethods(localHandler)

function answer(
  inbound: InboundRequest,
  status: number,
  body: Buffer | string,
  options: { readonly headers: readonly string[]; readonly closes: boolean },
): void {
  const { response } = inbound
  const rest = unreadBytes(inbound)
  const headers = [...inbound.responseHeaders, ...options.headers]
  if (body !== '') headers.push('content-length', String(Buffer.byteLength(body)))
  // The rest of a body streamed to a backend that stopped reading has no reader.
  const isTorn = inbound.request.destroyed && !inbound.request.complete
  if (options.closes || isTorn || rest > DISCARDED_BYTES) headers.push('connection', 'close')
  response.writeHead(status, headers).end(inbound.method === 'HEAD' ? undefined : body)
  inbound.trace?.responded(status, headers)
  if (inbound.trace !== undefined && body !== '') inbound.trace.body(Buffer.from(body))
}

/** Bytes of this request's body that the client may still send. */
function unreadBytes({ request }: InboundRequest): number {
  if (request.complete || request.destroyed) return 0
  if (request.headers['transfer-encoding'] !== undefined) return Number.POSITIVE_INFINITY
  return Number(request.headers['content-length'] ?? 0)
}
