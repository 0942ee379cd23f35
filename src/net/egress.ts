import { request } from 'node:http'
import { request as secureRequest } from 'node:https'
import { BlockList, isIP, type Socket } from 'node:net'
import type { buildConnector, Dispatcher } from 'undici'
import { OutboundError } from '../core/index.ts'
import type { Connect } from './connector.ts'
import { late } from './limits.ts'

/** The values of `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`. */
export interface EgressProxy {
  readonly httpsProxy?: string
  readonly httpProxy?: string
  readonly noProxy?: string
}

const DEFAULT_PORTS: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' }

const FAMILY: Readonly<Record<number, 'ipv4' | 'ipv6'>> = { 4: 'ipv4', 6: 'ipv6' }

/** Whether an address is in a range such as `10.0.0.0/8`; false for names and invalid ranges. */
const isInRange = (host: string, range: string): boolean => {
  const [, text = '', length = ''] = /^([^/]+)\/(\d{1,3})$/.exec(range) ?? []
  const base = text.replace(/^\[(.*)\]$/, '$1')
  const [family, familyOfBase] = [FAMILY[isIP(host)], FAMILY[isIP(base)]]
  if (family === undefined || familyOfBase === undefined) return false
  if (Number(length) > (familyOfBase === 'ipv4' ? 32 : 128)) return false
  const list = new BlockList()
  list.addSubnet(base, Number(length), familyOfBase)
  return list.check(host, family)
}

const isExempt = (url: URL, noProxy: string): boolean => {
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '')
  const port = url.port || DEFAULT_PORTS[url.protocol]
  return noProxy.split(/[,\s]+/).some((entry) => {
    if (entry === '') return false
    if (entry === '*') return true
    if (entry.includes('/')) return isInRange(host, entry)
    const withPort = /^(\[.*\]|[^:]*):(\d+)$/.exec(entry)
    if (withPort !== null && withPort[2] !== port) return false
    const name = (withPort?.[1] ?? entry)
      .toLowerCase()
      .replace(/^\[(.*)\]$/, '$1')
      .replace(/\.$/, '')
    const suffix = name.replace(/^\*?\./, '')
    // `*.example.com` matches subdomains only; `.example.com` and `example.com` match the name as well.
    return host.endsWith(`.${suffix}`) || (host === suffix && !name.startsWith('*.'))
  })
}

/**
 * Returns the egress proxy for a URL; undefined for a direct connection. The scheme of the target selects the
 * variable. `NO_PROXY` lists names, suffixes, `host:port`, CIDR ranges and `*`. Throws TypeError for an invalid proxy
 * URL.
 */
export const egressProxyFor = (url: URL, egress: EgressProxy | undefined): URL | undefined => {
  const proxy = url.protocol === 'https:' ? egress?.httpsProxy : egress?.httpProxy
  if (proxy === undefined || proxy === '' || isExempt(url, egress?.noProxy ?? '')) return undefined
  return new URL(proxy.includes('://') ? proxy : `http://${proxy}`)
}

/** Returns the egress proxy for absolute-form requests, which may respond itself: that of `http:` URLs. */
export const forwarderFor = (url: URL, egress: EgressProxy | undefined): URL | undefined =>
  url.protocol === 'http:' ? egressProxyFor(url, egress) : undefined

/** `Proxy-Authorization` for the user info of a proxy URL; undefined without user info. */
export const proxyAuthorization = (proxy: URL): string | undefined => {
  if (proxy.username === '') return undefined
  const pair = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`
  return `Basic ${Buffer.from(pair).toString('base64')}`
}

/**
 * Error for a rejected tunnel, or for 407 on an absolute-form request. Its cause has the proxy and its status, nothing
 * of the request.
 */
export const refusedByProxy = (proxy: URL, status: number | undefined): OutboundError =>
  new OutboundError('unreachable', {
    cause: Object.assign(new Error(`the egress proxy ${proxy.host} returned ${status}`), {
      code: `EGRESS_STATUS_${status}`,
    }),
    at: proxy.origin,
  })

/**
 * Opens a tunnel through the egress proxy (CONNECT, RFC 9110 §9.3.6) within `timeoutMs`; 0 = unlimited. `signal`
 * aborts it.
 */
export const openTunnel = (proxy: URL, target: string, timeoutMs: number, signal?: AbortSignal): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const authorization = proxyAuthorization(proxy)
    const send = proxy.protocol === 'https:' ? secureRequest : request
    const connect = send({
      host: proxy.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: proxy.port || DEFAULT_PORTS[proxy.protocol],
      method: 'CONNECT',
      path: target,
      agent: false,
      ...(signal === undefined ? {} : { signal }),
      headers: { host: target, ...(authorization === undefined ? {} : { 'proxy-authorization': authorization }) },
    })
    const timer = timeoutMs === 0 ? undefined : setTimeout(() => connect.destroy(late(timeoutMs)), timeoutMs)
    connect.once('connect', (response, socket) => {
      clearTimeout(timer)
      const { statusCode = 0 } = response
      // Any 2xx is a tunnel (RFC 9110 §9.3.6).
      if (statusCode >= 200 && statusCode < 300) return resolve(socket)
      socket.destroy()
      reject(refusedByProxy(proxy, response.statusCode))
    })
    connect.once('response', (response) => {
      response.destroy()
      connect.destroy(refusedByProxy(proxy, response.statusCode))
    })
    connect.once('error', (error) => {
      clearTimeout(timer)
      reject(error)
    })
    connect.end()
  })

/** Wraps a connector: `https` connections use a tunnel of the egress proxy, with TLS to the target. */
export const createTunnelConnect =
  (connect: Connect, proxyFor: (url: URL) => URL | undefined, timeoutMs: number): Connect =>
  async (options, signal) => {
    const proxy = options.protocol === 'https:' ? proxyFor(urlOf(options)) : undefined
    if (proxy === undefined) return connect(options, signal)
    const { hostname, port } = urlOf(options)
    const httpSocket = await openTunnel(proxy, `${hostname}:${port || '443'}`, timeoutMs, signal)
    return connect({ ...options, httpSocket }, signal)
  }

/** Origin of a connector's target. */
export const urlOf = (options: buildConnector.Options): URL =>
  new URL(`${options.protocol}//${options.host ?? options.hostname}`)

/**
 * Sends `http` requests to an egress proxy with an absolute-form target (RFC 9112 §3.2.2). `dispatcher` must be for
 * the proxy's origin.
 */
export const forwardThroughProxy = (dispatcher: Dispatcher, targetOrigin: string, proxy: URL): Dispatcher => {
  const authorization = proxyAuthorization(proxy)
  return dispatcher.compose((dispatch) => (options, handler) => {
    const given = Array.isArray(options.headers) ? options.headers : []
    // undici would set the Host of the proxy.
    const hasHost = given.some((text, index) => index % 2 === 0 && text.toLowerCase() === 'host')
    const headers = hasHost ? given : ['host', new URL(targetOrigin).host, ...given]
    return dispatch(
      {
        ...options,
        origin: proxy.origin,
        path: `${targetOrigin}${options.path}`,
        headers: authorization === undefined ? headers : [...headers, 'proxy-authorization', authorization],
      },
      handler,
    )
  })
}
