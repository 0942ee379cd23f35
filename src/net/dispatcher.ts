import type { Dispatcher } from 'undici'
import { asConnector } from './connector.ts'
import { createTunnelConnect, egressProxyFor, type EgressProxy, forwardThroughProxy } from './egress.ts'
import { createTargetConnect, type TargetTls } from './target-tls.ts'
import type { Timeouts } from './limits.ts'
import { Pool } from './undici.ts'
import { correctStreams } from './undici-gaps.ts'

export interface BackendOptions {
  /** `https://host[:port]`. */
  readonly origin: string
  readonly timeouts: Timeouts
  /** Offers HTTP/2 by ALPN. */
  readonly http2: boolean
  readonly targetTls?: TargetTls | undefined
  readonly egressProxy?: EgressProxy | undefined
}

/** Below the usual five seconds and more of servers, so that a connection that they just closed is seldom used (decisions §4). */
export const KEEP_ALIVE_MS = 4000

/**
 * undici's connections to one target, HTTP/2 among them where that is allowed and offered. Throws `Failure` config_error when
 * a TLS file can't be read.
 */
export const createDispatcher = (options: BackendOptions, allowH2: boolean): Dispatcher => {
  if (allowH2) correctStreams()
  const { connect: connectMs, firstByte, idle } = options.timeouts
  const url = new URL(options.origin)
  const connectTarget = createTargetConnect(options.targetTls ?? {}, { connectMs, allowH2 })
  const bounds = {
    allowH2,
    pipelining: 1,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    headersTimeout: firstByte,
    bodyTimeout: idle,
  }
  const proxy = egressProxyFor(url, options.egressProxy)
  if (proxy === undefined) return new Pool(url.origin, { ...bounds, connect: asConnector(connectTarget) })
  if (url.protocol === 'http:') {
    // The TLS settings are the target's; those of the proxy are the system's.
    const connect = asConnector(createTargetConnect({}, { connectMs, allowH2: false }))
    return forwardThroughProxy(new Pool(proxy.origin, { ...bounds, connect }), url.origin, proxy)
  }
  const connect = asConnector(createTunnelConnect(connectTarget, () => proxy, connectMs))
  return new Pool(url.origin, { ...bounds, connect })
}
