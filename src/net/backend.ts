import type { Dispatcher } from 'undici'
import {
  ConnectionBudget,
  type ExchangeControl,
  type ExchangeHandler,
  Pool as WirePool,
  type WireRequest,
} from '../wire/index.ts'
import { asConnector, type Connect } from './connector.ts'
import { createTunnelConnect, egressProxyFor, type EgressProxy, forwardThroughProxy } from './egress.ts'
import type { Timeouts } from './limits.ts'
import { createTargetConnect, type TargetTls } from './target-tls.ts'
import { undici } from './undici.ts'
import { correctStreams } from './undici-gaps.ts'

export { ConnectionBudget, type ExchangeControl, type ExchangeHandler }

export interface BackendOptions {
  /** `https://host[:port]`. */
  readonly origin: string
  readonly timeouts: Timeouts
  /** Offers HTTP/2 by ALPN. */
  readonly http2: boolean
  readonly targetTls?: TargetTls | undefined
  readonly egressProxy?: EgressProxy | undefined
}

/** What sends requests over connections of one kind. */
export interface Exchanges {
  /** Sends a request as soon as there is a connection; whatever comes of it, errors too, the handler is told. */
  dispatch(request: WireRequest, handler: ExchangeHandler): void
  /** Waits for the exchanges that are running; nothing new is sent. */
  close(): Promise<void>
  /** Ends everything at once. */
  destroy(): Promise<void>
}

/** The connections to one backend. */
export interface Backend {
  readonly exchanges: Exchanges
  /** Those that its connections are made with. */
  readonly timeouts: Timeouts
  /** The same without HTTP/2, which has no `Upgrade`. */
  readonly upgrades: Exchanges
  /** Waits for the exchanges that are running; nothing new is sent. */
  close(): Promise<void>
  /** Ends everything at once. */
  destroy(): Promise<void>
}

/** Below the usual five seconds and more of servers, so that a connection that they just closed is seldom used (decisions §4). */
const KEEP_ALIVE_MS = 4000

/** The same connections, counted among those of `budget`. */
const counted =
  (connect: Connect, budget: ConnectionBudget, waitMs: number): Connect =>
  (options) =>
    budget.open(() => connect(options), waitMs)

/**
 * undici's connections to one target, HTTP/2 among them where that is allowed and offered. Throws `Failure` config_error when
 * a TLS file can't be read.
 * @param budget bounds them together with others; default: nothing does
 */
export const createDispatcher = (
  options: BackendOptions,
  allowH2: boolean,
  budget = new ConnectionBudget(Infinity),
): Dispatcher => {
  if (allowH2) correctStreams()
  const { connect: connectMs, firstByte, idle } = options.timeouts
  const url = new URL(options.origin)
  const connectorOf = (connect: Connect) => asConnector(counted(connect, budget, connectMs))
  const connectTarget = createTargetConnect(options.targetTls ?? {}, { connectMs, allowH2 })
  const bounds = {
    allowH2,
    pipelining: 1,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    headersTimeout: firstByte,
    bodyTimeout: idle,
  }
  const { Pool } = undici()
  const proxy = egressProxyFor(url, options.egressProxy)
  if (proxy === undefined) return new Pool(url.origin, { ...bounds, connect: connectorOf(connectTarget) })
  if (url.protocol === 'http:') {
    // The TLS settings are the target's; those of the proxy are the system's.
    const connect = connectorOf(createTargetConnect({}, { connectMs, allowH2: false }))
    return forwardThroughProxy(new Pool(proxy.origin, { ...bounds, connect }), url.origin, proxy)
  }
  const connect = connectorOf(createTunnelConnect(connectTarget, () => proxy, connectMs))
  return new Pool(url.origin, { ...bounds, connect })
}

/**
 * Connections at a time to one backend; a request beyond waits as long as a connection may take. Clients have one request at a
 * time on a connection, so that as many of theirs come first.
 */
const MAX_CONNECTIONS = 20_000

/** Connections of our own: HTTP/1.1, straight to the target or through a tunnel. */
const createWirePool = (url: URL, connect: Connect, timeouts: Timeouts, budget: ConnectionBudget): Exchanges => {
  const { connect: connectMs, firstByte, idle } = timeouts
  const target = {
    host: url.host,
    hostname: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    protocol: url.protocol,
    port: url.port,
  }
  return new WirePool({
    authority: url.host,
    connect: () => connect(target),
    bounds: { firstByteMs: firstByte, idleMs: idle },
    keepMs: KEEP_ALIVE_MS,
    maxConnections: MAX_CONNECTIONS,
    budget,
    waitMs: connectMs,
  })
}

/** undici behind the same port, for what has no connections of our own: HTTP/2, and proxies that are asked in absolute form. */
const overUndici = (dispatcher: Dispatcher): Exchanges => ({
  dispatch: ({ headers, upgrade, ...request }, handler) => {
    // undici only reads them.
    const options = { ...request, headers: headers as string[], ...(upgrade === undefined ? undefined : { upgrade }) }
    dispatcher.dispatch(options, handler)
  },
  close: () => dispatcher.close(),
  destroy: () => dispatcher.destroy(),
})

const createExchanges = (options: BackendOptions, allowH2: boolean, budget: ConnectionBudget): Exchanges => {
  const { timeouts, targetTls = {}, egressProxy } = options
  const url = new URL(options.origin)
  const proxy = egressProxyFor(url, egressProxy)
  if (allowH2 || (proxy !== undefined && url.protocol === 'http:'))
    return overUndici(createDispatcher(options, allowH2, budget))
  const connect = createTargetConnect(targetTls, { connectMs: timeouts.connect, allowH2: false })
  if (proxy === undefined) return createWirePool(url, connect, timeouts, budget)
  const tunnel = createTunnelConnect(connect, () => proxy, timeouts.connect)
  return createWirePool(url, tunnel, timeouts, budget)
}

/**
 * The connections to one backend: HTTP/1.1 keep-alive, one request at a time on each and as many as are needed, or
 * HTTP/2 where asked for and offered. Throws `Failure` config_error when a TLS file can't be read.
 * @param budget bounds them together with those of other backends; default: nothing does
 */
export const createBackend = (options: BackendOptions, budget = new ConnectionBudget(Infinity)): Backend => {
  const exchanges = createExchanges(options, options.http2, budget)
  const upgrades = options.http2 ? createExchanges(options, false, budget) : exchanges
  return {
    exchanges,
    timeouts: options.timeouts,
    upgrades,
    close: async () => {
      await Promise.all([exchanges.close(), upgrades === exchanges ? undefined : upgrades.close()])
    },
    destroy: async () => {
      await Promise.all([exchanges.destroy(), upgrades === exchanges ? undefined : upgrades.destroy()])
    },
  }
}
