import { type ClientRequest, Failure, isLoopbackHost, parseHost, type Secret } from '../core/index.ts'
import { parseBearer } from '../http/index.ts'

export interface AccessOptions {
  /** The listener is bound to a loopback address or a Unix socket. */
  readonly isLocalBind: boolean
  /** Bearer token of `admin.tokenFile`, read for each request so that a new file applies at once. */
  readonly token?: () => Secret | undefined
}

/** The validated part of a request. */
type Asked = Pick<ClientRequest, 'headers' | 'headersDistinct'>

/** Whether the Host names this machine. A page that rebinds its DNS name to 127.0.0.1 sends that name. */
function namesThisMachine(request: Asked): boolean {
  const hosts = request.headersDistinct['host'] ?? []
  const named = hosts.length === 1 ? parseHost(hosts[0] ?? '') : undefined
  return named !== undefined && isLoopbackHost(named.host)
}

/**
 * On a loopback bind (`checksHost`), throws `bad_origin` for a name of another site that resolves here. HTTP/1.0
 * probes send none, browsers always do.
 */
export function checkOpenAccess(request: Asked, checksHost: boolean): void {
  if (checksHost && request.headers.host !== undefined && !namesThisMachine(request))
    throw new Failure('bad_origin', { detail: 'the Host header is not a name of this machine' })
}

/** Browsers send the origin. No page may call this, not even with a POST without preflight. */
function comesFromBrowserPage(request: Asked): boolean {
  const site = request.headers['sec-fetch-site']
  return request.headers.origin !== undefined || (site !== undefined && site !== 'none')
}

/**
 * Allows a request to a guarded endpoint: with the bearer token of the token file (compared in constant time), or on a
 * loopback or Unix-socket bind with a `Host` that names this machine (decisions §7, Admin listener). Throws
 * `missing_token`, `invalid_token`, `bad_request` or `bad_origin`; `not_found` if no request can be allowed.
 */
export function checkAccess(request: Asked, options: AccessOptions): void {
  const lines = request.headersDistinct['authorization'] ?? []
  const expected = options.token?.()
  if (lines.length > 0 && expected !== undefined) {
    const presented = parseBearer(lines)
    if (presented !== undefined && expected.equals(presented)) return
    throw new Failure('invalid_token', { detail: 'admin token', challenge: { error: 'invalid_token' } })
  }
  if (options.isLocalBind) {
    if (namesThisMachine(request) && !comesFromBrowserPage(request)) return
    throw new Failure('bad_origin', { detail: 'admin endpoint requested with a foreign Host, or by a page' })
  }
  if (options.token === undefined) throw new Failure('not_found')
  throw new Failure('missing_token', { challenge: {} })
}
