import { type ClientRequest, Failure, parseHost } from '../core/index.ts'

/** Whether a request has more than one `Host` line: a backend could read a different one than the proxy. */
export function hasSeveralHosts(rawHeaders: readonly string[]): boolean {
  let hosts = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? ''
    if (name.length === 4 && name.toLowerCase() === 'host') hosts++
  }
  return hosts > 1
}

/**
 * The `Host` of a request, empty for HTTP/1.0 without one. Throws `bad_request` for several, for an invalid host, and
 * for none in HTTP/1.1 (RFC 9112 §3.2).
 */
export function checkHostHeader(request: Pick<ClientRequest, 'headers' | 'rawHeaders' | 'httpVersion'>): string {
  if (hasSeveralHosts(request.rawHeaders)) throw refused('more than one Host header')
  const { host } = request.headers
  if (host === undefined && request.httpVersion === '1.0') return ''
  if (host === undefined || parseHost(host) === undefined) throw refused('no usable Host header')
  return host
}

const refused = (detail: string): Failure => new Failure('bad_request', { detail })
