import { createServer, type Server, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { createServer as createTlsServer } from 'node:tls'
import { type Clock, Failure, type ReachedLimit, type Log, type Metrics, STEADY_CLOCK } from '../core/index.ts'
import type { ListenAddress } from './address.ts'
import { bind } from './bind.ts'
import { createTrustedProxies } from './client.ts'
import { limitConnections } from './connection-limit.ts'
import { Connection, type ConnectionRules } from './connection.ts'
import { type ConnectionLimits, readingFailure, toldOf } from './refusal.ts'
import type { CutReason, Patience } from './stuck.ts'
import { IntrusiveSet } from './intrusive-set.ts'
import { memoryConnection } from './memory-socket.ts'
import { followCertificate, secureContext, type TlsMaterial } from './tls.ts'
import { UnreadBudget } from './unread-budget.ts'

/** How long a client may take, in milliseconds. */
export interface ListenerDeadlines {
  /** For the TLS handshake, and for a header section; 408 after it. Default 15 s, seen within a second. */
  readonly headersMs: number
  /** For a whole request, 408 after it; 0 (the default) where its owner looks after slow bodies. */
  readonly requestMs: number
  /** Between requests. Default 75 s. */
  readonly keepAliveMs: number
  /** For taking 240 bytes of an answer a second, counted over this time. Default 60 s. */
  readonly unreadAnswerMs: number
  /** For a piece of what is left of a body when the answer is out, default 5 s; six times that for all of it. */
  readonly unreadBodyMs: number
  /** For a connection that is read no further because too many requests wait for their turn. Default 30 s. */
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
/** How often connections are looked at, in milliseconds; a deadline is kept to about this. */
const SWEEP_MS = 1000
/** How often what waits for clients is counted: what comes in between is over the limit. */
const COUNT_MS = 250
/** What a client has to take of an answer that waits: as much as other servers want of theirs. */
const LEAST_BYTES_PER_SECOND = 240
const DEFAULT_UNREAD_BYTES = 64 * 1024 * 1024

export interface ListenerOptions<T> extends Pick<ConnectionRules<T>, 'serve' | 'refusal'> {
  readonly address: ListenAddress
  /** Serves https instead of http. */
  readonly tls?: TlsMaterial | undefined
  /** The URL of whoever accepts at `address` and hands connections to `take`; nothing is bound then. */
  readonly acceptedAt?: string | undefined
  /** Permissions of a Unix socket; see `bind`. */
  readonly socketMode?: number
  readonly headerLimitBytes: number
  /** Where that is changed; undefined where it is fixed. */
  readonly headerLimitSetting?: ReachedLimit['setting']
  /** Bytes beyond that limit that are read all the same, for an owner who judges by path. Default 0. */
  readonly readBeyondBytes?: number
  readonly deadlines?: Partial<ListenerDeadlines>
  /** Most connections at once. Default 10,000, fewer where the process has too few file descriptors. */
  readonly maxConnections?: number
  /** Bytes of answers that may wait for their clients, of all connections together. Default 64 MiB. */
  readonly unreadAnswersBytes?: number | undefined
  /** File descriptors that a connection costs: 2 for one that opens another one. Default 1. */
  readonly descriptorsPerConnection?: number
  /** CIDRs of peers that may say for whom they ask (`listen.trustedProxies`). Default: nobody may. */
  readonly trustedProxies?: readonly string[]
  /** Which upgrade requests are served, by what they ask for; others are answered as if they asked for none. Default: none is. */
  readonly servesUpgrade?: (upgrade: string) => boolean
  /** A client was cut off in the middle of the answer to this. */
  readonly onCut?: (failure: Failure, served: T) => void
  /** Of all deadlines. Default `STEADY_CLOCK`. */
  readonly steadyClock?: Clock
  readonly log: Log
  readonly metrics?: Metrics
}

/** An idle connection is kept so much longer than `Keep-Alive` promises, in milliseconds: who uses the promise to its end is not cut off. */
const KEEP_ALIVE_SPARE_MS = 1000

/** What clients are held to, as it is told them. */
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

const patienceOf = ({ unreadAnswerMs, unreadBodyMs, pipeliningMs }: ListenerDeadlines): Patience => ({
  unread_answer: {
    withinMs: unreadAnswerMs,
    least: (LEAST_BYTES_PER_SECOND * unreadAnswerMs) / 1000,
    totalMs: Number.POSITIVE_INFINITY,
  },
  unread_body: { withinMs: unreadBodyMs, least: 1, totalMs: 6 * unreadBodyMs },
  pipelining: { withinMs: pipeliningMs, least: 1, totalMs: Number.POSITIVE_INFINITY },
})

/** Why a client that was being answered was cut off. */
function cutFailure(reason: CutReason, { unreadAnswerMs }: ListenerDeadlines, unreadBytes: number): Failure {
  if (reason === 'crowded') {
    const setting = { name: 'the memory limit', of: 'the process' }
    const detail = 'answers that wait for their clients take too much memory together'
    return new Failure('overloaded', { detail, limit: { amount: unreadBytes, unit: 'bytes', setting } })
  }
  if (reason === 'pipelining') return new Failure('bad_request', { detail: 'too many requests wait for their turn' })
  const limit: ReachedLimit = { amount: unreadAnswerMs, unit: 'ms' }
  return new Failure('request_timeout', { rule: 'client_reads_slowly', limit })
}

/** A listener of the product: what every one of them needs beside answering requests. */
export interface Listener {
  /** `http://host:port` with the real port, or `unix:/path`. */
  readonly url: string
  /**
   * The client end of a new connection from inside the process: the only way in where `address` is `IN_PROCESS`, and
   * meant for that. For whoever serves it is a connection like any other.
   */
  connect(): Duplex
  /** Serves a connection that another process has accepted. False, and it is left alone, once this one has stopped. */
  take(socket: Socket): boolean
  /** No new connections; those that are open end with the answer that they are giving, idle ones at once. */
  stop(): void
  /** Resolves when no connection is left, and after `limitMs` in any case. */
  emptied(limitMs: number): Promise<void>
  /** Cuts what is left and lets go of everything. */
  close(): Promise<void>
}

/**
 * Listens and serves requests, each connection's one after the other. What can't be read is answered as `refusal` says; connections are bounded in number, in what they may hold and in how long they may be stuck. Rejects with
 * `config_error` when the address can't be bound.
 */
export async function openListener<T>(options: ListenerOptions<T>): Promise<Listener> {
  const { address, tls, steadyClock = STEADY_CLOCK, log, metrics, serve, refusal } = options
  const deadlines = { ...DEFAULT_DEADLINES, ...options.deadlines }
  const unreadBytes = options.unreadAnswersBytes ?? DEFAULT_UNREAD_BYTES
  const cuts = metrics && cutCounter(metrics)
  const refusals = metrics && refusalCounter(metrics)
  const rules: ConnectionRules<T> = {
    log,
    isSecure: tls !== undefined,
    canReset: tls === undefined && address.kind === 'tcp',
    trustedProxies: options.trustedProxies === undefined ? undefined : createTrustedProxies(options.trustedProxies),
    patience: patienceOf(deadlines),
    wire: {
      deadlines: { ...deadlines, keepAliveMs: deadlines.keepAliveMs && deadlines.keepAliveMs + KEEP_ALIVE_SPARE_MS },
      maxHeadBytes: options.headerLimitBytes + (options.readBeyondBytes ?? 0),
      keepAlive: deadlines.keepAliveMs > 0 ? `timeout=${Math.floor(deadlines.keepAliveMs / 1000)}` : undefined,
    },
    servesUpgrade: options.servesUpgrade ?? (() => false),
    serve,
    refusal,
    onCut(reason, served) {
      cuts?.with(reason).add()
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
  // A client that has ended its side is answered all the same.
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
  // Those whose TLS handshake is not over are no connections of ours yet, but the server waits for them.
  const sockets = new Set<Socket>()
  const count = (): number => (tls === undefined ? connections.size : sockets.size)
  if (tls !== undefined)
    server.on('connection', (socket) => {
      sockets.add(socket)
      socket.once('close', () => sockets.delete(socket))
    })

  const url = await placed(server, options)
  // Only now: until here an error is that of the address.
  const limit = limitConnections(server, {
    wanted: options.maxConnections ?? DEFAULT_CONNECTIONS,
    perConnection: options.descriptorsPerConnection ?? 1,
    log,
    onRefused: (reason) => refusals?.with(reason).add(),
  })
  const unfollow = secure === undefined || tls === undefined ? () => {} : followCertificate(secure, tls, log)
  const look = (): void => {
    const now = steadyClock.now()
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
      for (const connection of connections) connection.cut(undefined)
      for (const socket of sockets) socket.destroy()
      await closed
      clearInterval(sweep)
      clearInterval(counting)
      unfollow()
    },
  }
}

/** Opens the port, unless another process does so for this server. Gives where clients find it. */
function placed<T>(server: Server, { address, tls, socketMode, acceptedAt }: ListenerOptions<T>): Promise<string> {
  if (acceptedAt !== undefined) return Promise.resolve(acceptedAt)
  const scheme = tls === undefined ? 'http' : 'https'
  return bind(server, address, { scheme, ...(socketMode === undefined ? {} : { socketMode }) })
}

/** What the server sets on the connections that it accepts itself. */
function asAccepted(socket: Socket): Socket {
  socket.allowHalfOpen = true
  socket.setNoDelay()
  return socket
}
