import { createServer, type Server, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { createServer as createTlsServer } from 'node:tls'
import {
  Failure,
  type Log,
  type Metrics,
  MONOTONIC_CLOCK,
  type MonotonicClock,
  type ReachedLimit,
} from '../core/index.ts'
import type { ListenAddress } from './address.ts'
import { bind } from './bind.ts'
import { createTrustedProxies } from './client.ts'
import { limitConnections } from './connection-limit.ts'
import { Connection, type ConnectionRules } from './connection.ts'
import { type ConnectionLimits, readingFailure, toldOf } from './refusal.ts'
import type { AbortReason, StallLimits } from './stall-detector.ts'
import { IntrusiveSet } from './intrusive-set.ts'
import { memoryConnection } from './memory-socket.ts'
import { followCertificate, secureContext, type TlsMaterial } from './tls.ts'
import { UnreadBudget } from './unread-budget.ts'

/** Time limits for clients, in milliseconds. */
export interface ListenerDeadlines {
  /** For the TLS handshake, and for a header section; then 408. Default 15 s, checked every second. */
  readonly headersMs: number
  /** For a whole request, then 408; 0 (default) if the owner handles slow bodies. */
  readonly requestMs: number
  /** Between requests. Default 75 s. */
  readonly keepAliveMs: number
  /** For reading 240 bytes of a response per second, averaged over this time. Default 60 s. */
  readonly unreadAnswerMs: number
  /** For a piece of the remaining body after the response, default 5 s; six times that for the whole. */
  readonly unreadBodyMs: number
  /** For a connection that is paused because too many pipelined requests wait. Default 30 s. */
  readonly pipeliningMs: number
}

const DEFAULT_DEADLINES: ListenerDeadlines = {
  headersMs: 15_000,
  requestMs: 0,
  keepAliveMs: 75_000,
  unreadAnswerMs: 60_000,
  unreadBodyMs: 5_000,
  pipeliningMs: 30_000,
}

const DEFAULT_CONNECTIONS = 10_000
/** Milliseconds between checks of the connections; the precision of deadlines. */
const SWEEP_MS = 1000
/** Milliseconds between checks of unread bytes; the limit may be exceeded in between. */
const COUNT_MS = 250
/** Minimum speed of reading a response, as in other servers. */
const LEAST_BYTES_PER_SECOND = 240
const DEFAULT_UNREAD_BYTES = 64 * 1024 * 1024

export interface ListenerOptions<T> extends Pick<ConnectionRules<T>, 'serve' | 'refusal'> {
  readonly address: ListenAddress
  /** Serves https instead of http. */
  readonly tls?: TlsMaterial | undefined
  /** The URL of another process that accepts at `address` and passes connections to `take`; nothing is bound then. */
  readonly acceptedAt?: string | undefined
  /** Permissions of a Unix socket; see `bind`. */
  readonly socketMode?: number
  readonly headerLimitBytes: number
  /** The setting of that limit; undefined if it is fixed. */
  readonly headerLimitSetting?: ReachedLimit['setting']
  /** Bytes beyond that limit that are still read, for an owner with limits per path. Default 0. */
  readonly readBeyondBytes?: number
  readonly deadlines?: Partial<ListenerDeadlines>
  /** Maximum concurrent connections. Default 10,000, fewer if the process has too few file descriptors. */
  readonly maxConnections?: number
  /** Maximum bytes of unread responses, all connections together. Default 64 MiB. */
  readonly unreadAnswersBytes?: number | undefined
  /** File descriptors per connection: 2 if it opens another one. Default 1. */
  readonly descriptorsPerConnection?: number
  /** CIDRs of peers whose forwarding headers are trusted (`listen.trustedProxies`). Default: none. */
  readonly trustedProxies?: readonly string[]
  /** Whether an upgrade to this protocol is served; other requests are answered without an upgrade. Default: none. */
  readonly servesUpgrade?: (upgrade: string) => boolean
  /** Called when a client is disconnected during its response. */
  readonly onCut?: (failure: Failure, served: T) => void
  /** Clock of all deadlines. Default `MONOTONIC_CLOCK`. */
  readonly monotonicClock?: MonotonicClock
  readonly log: Log
  readonly metrics?: Metrics
}

/** Extra milliseconds for an idle connection beyond `Keep-Alive`: a request at the last moment is still served. */
const KEEP_ALIVE_SPARE_MS = 1000

/** The limits of clients, as reported to them. */
const limitsOf = (
  { headerLimitBytes, headerLimitSetting }: Pick<ListenerOptions<unknown>, 'headerLimitBytes' | 'headerLimitSetting'>,
  { headersMs, requestMs }: ListenerDeadlines,
): ConnectionLimits => ({
  headers: { amount: headerLimitBytes, unit: 'bytes', setting: headerLimitSetting },
  header: { amount: headersMs, unit: 'ms' },
  request: { amount: requestMs || headersMs, unit: 'ms' },
})

const cutCounter = (metrics: Metrics) =>
  metrics.counter('extauth_connections_cut_total', 'Client connections ended because they were stuck.', ['reason'])

const refusalCounter = (metrics: Metrics) =>
  metrics.counter('extauth_connections_refused_total', 'Client connections that were not accepted.', ['reason'])

const stallLimitsOf = ({ unreadAnswerMs, unreadBodyMs, pipeliningMs }: ListenerDeadlines): StallLimits => ({
  unread_answer: {
    withinMs: unreadAnswerMs,
    least: (LEAST_BYTES_PER_SECOND * unreadAnswerMs) / 1000,
    totalMs: Number.POSITIVE_INFINITY,
  },
  unread_body: { withinMs: unreadBodyMs, least: 1, totalMs: 6 * unreadBodyMs },
  pipelining: { withinMs: pipeliningMs, least: 1, totalMs: Number.POSITIVE_INFINITY },
})

/** The failure of an aborted response. */
function cutFailure(reason: AbortReason, { unreadAnswerMs }: ListenerDeadlines, unreadBytes: number): Failure {
  if (reason === 'crowded') {
    const setting = { name: 'the memory limit', of: 'the process' }
    const detail = 'unread responses of all clients exceed the memory limit'
    return new Failure('overloaded', { detail, limit: { amount: unreadBytes, unit: 'bytes', setting } })
  }
  if (reason === 'pipelining') return new Failure('bad_request', { detail: 'too many pipelined requests' })
  const limit: ReachedLimit = { amount: unreadAnswerMs, unit: 'ms' }
  return new Failure('request_timeout', { rule: 'client_reads_slowly', limit })
}

/** A listener of the product, with everything except the answers to requests. */
export interface Listener {
  /** `http://host:port` with the real port, or `unix:/path`. */
  readonly url: string
  /**
   * The client end of a new in-process connection: the only way to connect if `address` is `IN_PROCESS`. The server
   * treats it like any other.
   */
  connect(): Duplex
  /** Serves a connection that another process has accepted. Returns false and leaves it unchanged once stopped. */
  take(socket: Socket): boolean
  /** Accepts no new connections; open ones close after their current response, idle ones immediately. */
  stop(): void
  /** Resolves when no connection is left, and after `limitMs` at the latest. */
  emptied(limitMs: number): Promise<void>
  /** Aborts remaining connections and releases all resources. */
  close(): Promise<void>
}

/**
 * Listens and serves requests, sequentially per connection. Unreadable input is answered with `refusal`; connections
 * are limited in number, memory and stall time. Rejects with `config_error` if the address cannot be bound.
 */
export async function openListener<T>(options: ListenerOptions<T>): Promise<Listener> {
  const { address, tls, monotonicClock = MONOTONIC_CLOCK, log, metrics, serve, refusal } = options
  const deadlines = { ...DEFAULT_DEADLINES, ...options.deadlines }
  const unreadBytes = options.unreadAnswersBytes ?? DEFAULT_UNREAD_BYTES
  const aborts = metrics && cutCounter(metrics)
  const refusals = metrics && refusalCounter(metrics)
  const rules: ConnectionRules<T> = {
    log,
    isSecure: tls !== undefined,
    canReset: tls === undefined && address.kind === 'tcp',
    trustedProxies: options.trustedProxies === undefined ? undefined : createTrustedProxies(options.trustedProxies),
    stallLimits: stallLimitsOf(deadlines),
    wire: {
      deadlines: { ...deadlines, keepAliveMs: deadlines.keepAliveMs && deadlines.keepAliveMs + KEEP_ALIVE_SPARE_MS },
      maxHeadBytes: options.headerLimitBytes + (options.readBeyondBytes ?? 0),
      keepAlive: deadlines.keepAliveMs > 0 ? `timeout=${Math.floor(deadlines.keepAliveMs / 1000)}` : undefined,
    },
    servesUpgrade: options.servesUpgrade ?? (() => false),
    serve,
    refusal,
    onCut(reason, served) {
      aborts?.with(reason).add()
      if (served !== undefined) options.onCut?.(cutFailure(reason, deadlines, unreadBytes), served)
    },
    limits: limitsOf(options, deadlines),
  }
  const connections = new IntrusiveSet<Connection<T>>()
  let onEmpty: (() => void) | undefined
  let isStopped = false

  const serveConnection = (socket: Socket): void => {
    const connection = new Connection(socket, rules)
    connections.add(connection)
    socket.once('close', () => {
      connections.delete(connection)
      connection.closed()
      if (connections.size === 0) onEmpty?.()
    })
    if (isStopped) connection.closeWhenFree()
  }
  // A half-closed client still gets its response.
  const settings = { allowHalfOpen: true, noDelay: true }
  const secure =
    tls &&
    createTlsServer({ ...settings, ...secureContext(tls), handshakeTimeout: deadlines.headersMs }, serveConnection)
  secure?.on('tlsClientError', (error, socket) => {
    const failure = readingFailure(error, rules.limits, false)
    if (failure !== undefined) log.info(toldOf(failure), 'connection refused')
    socket.destroy()
  })
  const server = secure ?? createServer(settings, serveConnection)
  // Sockets during the TLS handshake are not connections yet, but the server waits for them.
  const sockets = new Set<Socket>()
  const count = (): number => (tls === undefined ? connections.size : sockets.size)
  if (tls !== undefined)
    server.on('connection', (socket) => {
      sockets.add(socket)
      socket.once('close', () => sockets.delete(socket))
    })

  const url = await placed(server, options)
  // Only from here on: earlier errors are errors of the address.
  const limit = limitConnections(server, {
    wanted: options.maxConnections ?? DEFAULT_CONNECTIONS,
    perConnection: options.descriptorsPerConnection ?? 1,
    log,
    onRefused: (reason) => refusals?.with(reason).add(),
  })
  const unfollow = secure === undefined || tls === undefined ? () => {} : followCertificate(secure, tls, log)
  const look = (): void => {
    const now = monotonicClock.now()
    for (const connection of connections) connection.look(now)
    limit.look(count())
  }
  const sweep = setInterval(look, Math.min(SWEEP_MS, deadlines.headersMs))
  sweep.unref()
  const unread = new UnreadBudget(unreadBytes, log, metrics)
  const counting = setInterval(() => unread.look(connections), COUNT_MS)
  counting.unref()
  const closed = new Promise<void>((resolve) => void server.once('close', resolve))

  const stop = (): void => {
    if (isStopped) return
    isStopped = true
    server.close()
    for (const connection of connections) connection.closeWhenFree()
  }
  return {
    url,
    connect() {
      const [client, served] = memoryConnection()
      if (isStopped) client.destroy()
      else server.emit('connection', served)
      return client
    },
    take(socket) {
      if (isStopped) return false
      if (count() < limit.max) server.emit('connection', asAccepted(socket))
      else {
        limit.refuse()
        socket.destroy()
      }
      return true
    },
    stop,
    async emptied(limitMs) {
      if (connections.size === 0) return
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, limitMs)
      onEmpty = resolve
      await promise
      clearTimeout(timer)
    },
    async close() {
      stop()
      for (const connection of connections) connection.abort(undefined)
      for (const socket of sockets) socket.destroy()
      await closed
      clearInterval(sweep)
      clearInterval(counting)
      unfollow()
    },
  }
}

/** Opens the port, unless another process does so for this server. Returns its URL. */
function placed<T>(server: Server, { address, tls, socketMode, acceptedAt }: ListenerOptions<T>): Promise<string> {
  if (acceptedAt !== undefined) return Promise.resolve(acceptedAt)
  const scheme = tls === undefined ? 'http' : 'https'
  return bind(server, address, { scheme, ...(socketMode === undefined ? {} : { socketMode }) })
}

/** Sets the options that the server sets on connections it accepts itself. */
function asAccepted(socket: Socket): Socket {
  socket.allowHalfOpen = true
  socket.setNoDelay()
  return socket
}
