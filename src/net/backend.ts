import type { Duplex, Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import {
  ConnectionBudget,
  type ExchangeControl,
  type ExchangeHandler,
  inPieces,
  Pool as WirePool,
  type WireRequest,
} from '../wire/index.ts'
import { asConnector, type Connect } from './connector.ts'
import {
  createTunnelConnect,
  egressProxyFor,
  type EgressProxy,
  forwarderFor,
  forwardThroughProxy,
  proxyAuthorization,
} from './egress.ts'
import type { Timeouts } from './limits.ts'
import { createTargetConnect, type TargetTls } from './target-tls.ts'
import { errors, undici } from './undici.ts'
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

/** Sends requests over connections of one kind. */
export interface Exchanges {
  /**
   * Sends a request when a connection is available. The handler receives the response and all errors. Undefined if the
   * request is already complete.
   */
  dispatch(request: WireRequest, handler: ExchangeHandler): ExchangeControl | undefined
  /** Waits for exchanges in flight; rejects new ones. */
  close(): Promise<void>
  /** Aborts all exchanges. */
  destroy(): Promise<void>
}

/** The connections to one backend. */
export interface Backend {
  readonly exchanges: Exchanges
  /** The timeouts of its connections. */
  readonly timeouts: Timeouts
  /** HTTP/1.1 connections for `Upgrade`, which HTTP/2 lacks. */
  readonly upgrades: Exchanges
  /** The egress proxy that receives requests in absolute form and may respond itself; undefined if none. */
  readonly forwarder: URL | undefined
  /** Waits for exchanges in flight; rejects new ones. */
  close(): Promise<void>
  /** Aborts all exchanges. */
  destroy(): Promise<void>
}

/**
 * Below the keep-alive of common servers (5 s or more), so that connections are rarely reused while the server closes
 * them (decisions §4).
 */
const KEEP_ALIVE_MS = 4000

/** Counts connections in `budget`. */
const counted =
  (connect: Connect, budget: ConnectionBudget, waitMs: number): Connect =>
  (options) =>
    budget.open(() => connect(options), waitMs)

/**
 * Creates undici's connections to one target, with HTTP/2 if allowed and offered. Throws `Failure` config_error for an
 * unreadable TLS file.
 * @param budget limits connections of several backends; unlimited by default
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
    // The TLS settings are the target's; connections to the proxy use the system's.
    const connect = connectorOf(createTargetConnect({}, { connectMs, allowH2: false }))
    return forwardThroughProxy(new Pool(proxy.origin, { ...bounds, connect }), url.origin, proxy)
  }
  const connect = connectorOf(createTunnelConnect(connectTarget, () => proxy, connectMs))
  return new Pool(url.origin, { ...bounds, connect })
}

/**
 * Concurrent connections to one backend; further requests wait up to the connect timeout. Client connections carry one
 * request at a time, so their limit applies first.
 */
const MAX_CONNECTIONS = 20_000

/**
 * HTTP/1.1 connections: direct, through a tunnel, or to an egress proxy with absolute-form requests (RFC 9112 §3.2.2).
 */
const createWirePool = (
  url: URL,
  forwarder: URL | undefined,
  connect: Connect,
  timeouts: Timeouts,
  budget: ConnectionBudget,
): Exchanges => {
  const { connect: connectMs, firstByte, idle } = timeouts
  const { host, hostname, protocol, port } = forwarder ?? url
  const target = { host, hostname: hostname.replace(/^\[(.*)\]$/, '$1'), protocol, port }
  const authorization = forwarder && proxyAuthorization(forwarder)
  return new WirePool({
    authority: url.host,
    ...(forwarder === undefined ? {} : { absolute: url.origin }),
    ...(authorization === undefined ? {} : { headers: ['proxy-authorization', authorization] }),
    connect: (signal) => connect(target, signal),
    bounds: { firstByteMs: firstByte, idleMs: idle },
    keepMs: KEEP_ALIVE_MS,
    maxConnections: MAX_CONNECTIONS,
    budget,
    waitMs: connectMs,
  })
}

/** An exchange over undici, whose handler is notified of its end at once. */
class UndiciExchange implements ExchangeControl, Dispatcher.DispatchHandler {
  readonly #firstByteMs: number
  readonly #body: Readable | undefined
  #handler: ExchangeHandler | undefined
  #controller: Dispatcher.DispatchController | undefined
  #aborted: Error | undefined
  /** One deadline for the response head, regardless of interim responses. */
  #interim: NodeJS.Timeout | undefined

  constructor(handler: ExchangeHandler, body: Readable | undefined, firstByteMs: number) {
    this.#handler = handler
    this.#body = body
    this.#firstByteMs = firstByteMs
  }

  get isOver(): boolean {
    return this.#handler === undefined
  }

  pause(): void {
    this.#controller?.pause()
  }

  resume(): void {
    this.#controller?.resume()
  }

  abort(reason: Error): void {
    if (this.#handler === undefined) return
    if (this.#controller !== undefined) return this.#controller.abort(reason)
    this.#aborted = reason
    this.#body?.destroy(reason)
    this.#over()?.onResponseError(undefined, reason)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#aborted !== undefined) return controller.abort(this.#aborted)
    this.#controller = controller
    this.#handler?.onRequestStart(this)
  }

  onResponseStart(
    _controller: unknown,
    status: number,
    headers: Parameters<ExchangeHandler['onResponseStart']>[2],
  ): void {
    if (status >= 200) clearTimeout(this.#interim)
    else if (this.#firstByteMs > 0)
      this.#interim ??= setTimeout(() => this.abort(new errors.HeadersTimeoutError()), this.#firstByteMs)
    this.#handler?.onResponseStart(this, status, headers)
  }

  onResponseData(_controller: unknown, data: Buffer): void {
    this.#handler?.onResponseData(this, data)
  }

  onResponseEnd(): void {
    this.#over()?.onResponseEnd(this)
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#over()?.onResponseError(this.#controller && this, error)
  }

  onRequestUpgrade(
    _controller: unknown,
    status: number,
    headers: Parameters<ExchangeHandler['onResponseStart']>[2],
    socket: Duplex,
  ): void {
    this.#over()?.onRequestUpgrade?.(this, status, headers, socket)
  }

  #over(): ExchangeHandler | undefined {
    const handler = this.#handler
    this.#handler = undefined
    clearTimeout(this.#interim)
    return handler
  }
}

/** undici behind the same interface, for HTTP/2. */
const overUndici = (dispatcher: Dispatcher, { firstByte }: Timeouts): Exchanges => ({
  dispatch: ({ headers, upgrade, body, ...request }, handler) => {
    // A queued stream that is destroyed sends an empty body; bytes cannot be withdrawn.
    const pieces = Buffer.isBuffer(body) && body.length > 0 ? inPieces(body).on('error', () => undefined) : undefined
    const isSaid = headers.some((name, at) => at % 2 === 0 && name.toLowerCase() === 'content-length')
    const options = {
      ...request,
      body: pieces ?? body,
      // undici only reads them.
      headers:
        Buffer.isBuffer(body) && !isSaid ? [...headers, 'content-length', String(body.length)] : (headers as string[]),
      ...(upgrade === undefined ? undefined : { upgrade }),
    }
    const exchange = new UndiciExchange(handler, pieces, firstByte)
    dispatcher.dispatch(options, exchange)
    return exchange.isOver ? undefined : exchange
  },
  close: () => dispatcher.close(),
  destroy: () => dispatcher.destroy(),
})

const createExchanges = (options: BackendOptions, allowH2: boolean, budget: ConnectionBudget): Exchanges => {
  const { timeouts, targetTls = {}, egressProxy } = options
  const url = new URL(options.origin)
  const forwarder = forwarderFor(url, egressProxy)
  if (allowH2 && forwarder === undefined) return overUndici(createDispatcher(options, true, budget), timeouts)
  // The TLS settings are the target's; connections to the proxy use the system's.
  const connect = createTargetConnect(forwarder === undefined ? targetTls : {}, {
    connectMs: timeouts.connect,
    allowH2: false,
  })
  const proxy = egressProxyFor(url, egressProxy)
  if (forwarder !== undefined || proxy === undefined) return createWirePool(url, forwarder, connect, timeouts, budget)
  const tunnel = createTunnelConnect(connect, () => proxy, timeouts.connect)
  return createWirePool(url, undefined, tunnel, timeouts, budget)
}

/**
 * Creates the connections to one backend: HTTP/1.1 keep-alive without pipelining and as many as needed, or HTTP/2 if
 * configured and offered. Throws `Failure` config_error for an unreadable TLS file.
 * @param budget limits connections of several backends; unlimited by default
 */
export const createBackend = (options: BackendOptions, budget = new ConnectionBudget(Infinity)): Backend => {
  const exchanges = createExchanges(options, options.http2, budget)
  const upgrades = options.http2 ? createExchanges(options, false, budget) : exchanges
  return {
    exchanges,
    timeouts: options.timeouts,
    upgrades,
    forwarder: forwarderFor(new URL(options.origin), options.egressProxy),
    close: async () => {
      await Promise.all([exchanges.close(), upgrades === exchanges ? undefined : upgrades.close()])
    },
    destroy: async () => {
      await Promise.all([exchanges.destroy(), upgrades === exchanges ? undefined : upgrades.destroy()])
    },
  }
}
