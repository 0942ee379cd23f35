import { type ClientRequest, Failure } from '../core/index.ts'
import { hasSeveralHosts, readRequestTarget } from '../http/index.ts'
import type { InboundRequest } from './inbound-request.ts'
import { isWellKnown } from './documents.ts'
import type { LocalHandlers } from './local-handlers.ts'
import type { OriginRules } from './origins.ts'

/** How far beyond `listen.headerLimit` a header section is read at all: by then it is known whom it is for. */
export const READ_BEYOND_BYTES = 64 * 1024

/** What the header limit is called. */
export const HEADER_LIMIT = { name: 'listen.headerLimit', of: 'the ProxyConfig' }

/** What the checks need to know. */
export interface AdmissionRules {
  readonly origins: OriginRules
  readonly headerLimitBytes: number
}

/** What browsers may read of an answer beside the usual. */
const EXPOSED = 'Mcp-Session-Id, WWW-Authenticate, X-Request-Id, Retry-After'

/**
 * The checks that need no route: framing and targets that two parties could read differently, `Host` against DNS
 * rebinding, `Origin` against foreign pages. Sets path, query and local handler of the request and its CORS headers. What Node's
 * parser refuses by itself (Content-Length with Transfer-Encoding, obs-fold, NUL) never gets here. Throws `bad_request`,
 * `bad_origin`, `method_not_allowed`, `headers_too_large`.
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
  const judged = rules.judgeHost(host)
  if (judged === 'malformed') throw refused('no usable Host header')
  const { path, query, hasEmptyQuery } = readRequestTarget(request.url, host)
  if (judged === 'refused')
    throw new Failure('bad_origin', { detail: 'the Host header is not one that is served here' })
  // CONNECT never comes here. TRACE would hand the caller the credential that we add (RFC 9110 §9.3.8).
  if (inbound.method === 'TRACE') throw new Failure('method_not_allowed', { detail: 'TRACE' })
  inbound.path = path
  inbound.query = query
  inbound.hasEmptyQuery = hasEmptyQuery
  const { origin } = headers
  const local = localHandlers.find(path, query)
  inbound.localHandler = local
  inbound.hasLongHeaders = headerBytes(request) >= headerLimitBytes
  if (inbound.hasLongHeaders && local?.refuseHeaders === undefined) {
    const limit = { amount: headerLimitBytes, unit: 'bytes', setting: HEADER_LIMIT } as const
    throw new Failure('headers_too_large', { limit })
  }
  // What is not there is open as well: clients look for documents at several addresses.
  const isOpen = local === undefined ? isWellKnown(path) : local.cors === 'everybody'
  if (isOpen) inbound.responseHeaders.push('access-control-allow-origin', '*', 'access-control-expose-headers', EXPOSED)
  else if (origin !== undefined) {
    const isForm = local?.takesForeignForms === true && request.method === 'POST'
    const isOwn = local?.ownOrigins?.includes(origin.toLowerCase()) === true
    if (!isForm && !isOwn) admitOrigin(inbound, origin, rules)
  } else if (local === undefined) refuseForeignPage(headers['sec-fetch-site'])
}

/**
 * A browser sends no `Origin` with a GET for an image or a link, but says that another site asks for it (Fetch Metadata):
 * it would act with the credential of whoever sits there. Logins are navigated to from other sites, and judge by themselves.
 */
function refuseForeignPage(site: string | string[] | undefined): void {
  if (site === undefined || site === 'none' || site === 'same-origin') return
  throw new Failure('bad_origin', { detail: 'a page of another site asks, without an allowed Origin' })
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

/** As Node's parser counts: without what stands between names and values. */
function headerBytes({ url, rawHeaders }: ClientRequest): number {
  let bytes = url.length
  for (const text of rawHeaders) bytes += text.length
  return bytes
}

const refused = (detail: string): Failure => new Failure('bad_request', { detail })
