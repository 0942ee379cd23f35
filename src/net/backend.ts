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

/** The connections to one backend. */
export interface Backend {
  readonly dispatcher: Dispatcher
  /** Those that its connections are made with. */
  readonly timeouts: Timeouts
  /** The same without HTTP/2, which has no `Upgrade`. */
  readonly upgrades: Dispatcher
  /** Waits for the exchanges that are running; nothing new is sent. */
  close(): Promise<void>
  /** Ends everything at once. */
  destroy(): Promise<void>
}

// Below the usual five seconds and more of servers, so that a connection that they just closed is seldom used (decisions §4).
const KEEP_ALIVE_MS = 4000

const createPool = (options: BackendOptions, allowH2: boolean): Dispatcher => {
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

/**
 * The connections to one backend: HTTP/1.1 keep-alive, one request at a time on each and as many as are needed, or
 * HTTP/2 where asked for and offered. Throws `Failure` config_error when a TLS file can't be read.
 */
export const createBackend = (options: BackendOptions): Backend => {
  if (options.http2) correctStreams()
  const dispatcher = createPool(options, options.http2)
  const upgrades = options.http2 ? createPool(options, false) : dispatcher
  return {
    dispatcher,
    timeouts: options.timeouts,
    upgrades,
    close: async () => {
      await Promise.all([dispatcher.close(), upgrades === dispatcher ? undefined : upgrades.close()])
    },
    destroy: async () => {
      await Promise.all([dispatcher.destroy(), upgrades === dispatcher ? undefined : upgrades.destroy()])
    },
  }
}
