import { type IncomingMessage, type RequestOptions, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { isLoopbackHost, parseHost } from '../core/index.ts'
import type { OwnRequest } from '../inspect/index.ts'

/** Address and certificate of the proxy's own listener. */
export interface OwnListener {
  /** The value of `Proxy.url`. */
  readonly url: string
  /** Configured host names, in addition to those that the bind address implies. */
  readonly allowedHosts: readonly string[]
  /** Certificate in PEM, the only one accepted; undefined for plain HTTP. */
  readonly certificate: Buffer | undefined
}

/**
 * Sends a request to the proxy's own listener, as a local client does, and returns the streamed response. Rejects
 * if the connection fails. It does not use `net`: neither egress proxy nor address guard apply.
 */
export function requestOwnListener(listener: OwnListener, asked: OwnRequest): Promise<IncomingMessage> {
  const { method, path, headers, body, signal } = asked
  const { url, allowedHosts, certificate } = listener
  const where = addressOf(url)
  const options: RequestOptions = {
    ...where,
    method,
    path,
    headers: { ...headers, host: hostFor(where, allowedHosts), ...(body && { 'content-length': body.length }) },
    signal,
    // A keep-alive connection would delay the drain of the listener.
    agent: false,
  }
  return new Promise((resolve, reject) => {
    const request =
      certificate === undefined
        ? requestHttp(options, resolve)
        : requestHttps(
            { ...options, ca: certificate, allowPartialTrustChain: true, checkServerIdentity: () => undefined },
            resolve,
          )
    request.on('error', reject)
    request.end(body)
  })
}

type Where = { readonly socketPath: string } | { readonly host: string; readonly port: number }

function addressOf(url: string): Where {
  if (url.startsWith('unix:')) return { socketPath: url.slice('unix:'.length) }
  const { hostname, port, protocol } = new URL(url.replace('//*', '//0.0.0.0'))
  const bare = hostname.replace(/^\[|\]$/g, '')
  const host = bare === '0.0.0.0' ? '127.0.0.1' : bare === '::' ? '::1' : bare
  return { host, port: Number(port) || (protocol === 'https:' ? 443 : 80) }
}

/** A host name that the listener accepts: that of its address, or a configured one. */
function hostFor(where: Where, allowedHosts: readonly string[]): string {
  const own =
    'socketPath' in where ? 'localhost' : `${where.host.includes(':') ? `[${where.host}]` : where.host}:${where.port}`
  if (allowedHosts.length === 0 || allowedHosts.includes('*')) return own
  const name = parseHost(own)?.host ?? ''
  return isLoopbackHost(name) && !('socketPath' in where) && allowedHosts.some((host) => host.startsWith(name))
    ? own
    : (allowedHosts[0] ?? own)
}
