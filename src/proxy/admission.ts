import { type ClientRequest, Failure } from '../core/index.ts'
import { hasSeveralHosts, readRequestTarget } from '../http/index.ts'
import type { InboundRequest } from './inbound-request.ts'
import { isWellKnown } from './documents.ts'
import type { LocalHandlers } from './local-handlers.ts'
import type { OriginRules } from './origins.ts'

/** Bytes beyond `listen.headerLimit` that are still read, since the limit depends on the endpoint. */
export const READ_BEYOND_BYTES = 64 * 1024

/** Name of the header limit in messages. */
export const HEADER_LIMIT = { name: 'listen.headerLimit', of: 'the ProxyConfig' }

/** Inputs of the checks. */
export interface AdmissionRules {
  readonly origins: OriginRules
  readonly headerLimitBytes: number
}

/** Response headers that browsers may read besides the safelisted ones. */
const EXPOSED = 'Mcp-Session-Id, WWW-Authenticate, X-Request-Id, Retry-After'

/**
 * The checks that need no route: ambiguous framing and targets, `Host` against DNS rebinding, `Origin` against
 * foreign pages. Sets path, query and local handler of the request and its CORS headers. The parser has rejected
 * Content-Length with Transfer-Encoding, obs-fold and NUL before. Throws `bad_request`, `bad_origin`,
 * `method_not_allowed`, `headers_too_large`.
 */
export function admit(
  inbound: InboundRequest,
  { origins: rules, headerLimitBytes }: AdmissionRules,
  localHandlers: LocalHandlers,
): void {
  const { request } = inbound
  const { headers } = request
  checkFraming(request)
  const host = headers.host ?? ''
  const verdict = rules.checkHost(host)
  if (verdict === 'malformed') throw refused('no usable Host header')
  const { path, query, hasEmptyQuery } = readRequestTarget(request.url, host)
  if (verdict === 'refused')
    throw new Failure('bad_origin', {
      detail: 'the Host header names an unknown host, expected a name in "allowedHosts"',
    })
  // CONNECT never gets here. TRACE would return the backend's credential to the caller (RFC 9110 §9.3.8).
  if (inbound.method === 'TRACE') throw new Failure('method_not_allowed', { detail: 'TRACE' })
  inbound.path = path
  inbound.query = query
  inbound.hasEmptyQuery = hasEmptyQuery
  const { origin } = headers
  const local = localHandlers.find(path, query)
  inbound.localHandler = local
  if (headerBytes(request) >= headerLimitBytes) {
    const limit = { amount: headerLimitBytes, unit: 'bytes', setting: HEADER_LIMIT } as const
    throw new Failure('headers_too_large', { limit })
  }
  // Missing documents are open to all origins as well: clients probe several addresses.
  const isOpen = local === undefined ? isWellKnown(path) : local.cors === 'any_origin'
  if (isOpen) inbound.responseHeaders.push('access-control-allow-origin', '*', 'access-control-expose-headers', EXPOSED)
  else if (origin !== undefined) {
    const isForm = local?.takesForeignForms === true && request.method === 'POST'
    const isOwn = local?.ownOrigins?.includes(origin.toLowerCase()) === true
    if (!isForm && !isOwn) admitOrigin(inbound, origin, rules)
  } else if (local === undefined) refuseForeignPage(headers['sec-fetch-site'])
}

/**
 * A browser sends no `Origin` with a GET for an image or a link, but reports a cross-site request (Fetch Metadata):
 * it would act with the credential of its user. Login endpoints are navigated to from other sites, and check the site
 * themselves.
 */
function refuseForeignPage(site: string | string[] | undefined): void {
  if (site === undefined || site === 'none' || site === 'same-origin') return
  throw new Failure('bad_origin', { detail: 'cross-site request without an allowed Origin' })
}

function admitOrigin(inbound: InboundRequest, origin: string, rules: OriginRules): void {
  if (!rules.allowsOrigin(origin)) throw new Failure('bad_origin', { detail: 'the Origin header is not allowed' })
  const { responseHeaders } = inbound
  responseHeaders.push('access-control-allow-origin', origin, 'vary', 'Origin')
  responseHeaders.push('access-control-expose-headers', EXPOSED)
}

function checkFraming(request: ClientRequest): void {
  if (hasSeveralHosts(request.rawHeaders)) throw refused('more than one Host header')
}

/** Counted like Node's parser: without separators. */
function headerBytes({ url, rawHeaders }: ClientRequest): number {
  let bytes = url.length
  for (const text of rawHeaders) bytes += text.length
  return bytes
}

const refused = (detail: string): Failure => new Failure('bad_request', { detail })
