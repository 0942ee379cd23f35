import { randomFillSync } from 'node:crypto'
import { MONOTONIC_CLOCK } from '../core/index.ts'
import { mcpFailureBody } from '../http/index.ts'
import { IntrusiveSet, openListener, parseListenAddress } from '../listen/index.ts'
import { HEADER_LIMIT, READ_BEYOND_BYTES } from './admission.ts'
import { createBodyWatch } from './body-watch.ts'
import { drainProxy } from './drain.ts'
import { createHandler } from './handler.ts'
import type { InboundRequest } from './inbound-request.ts'
import { createRequestRecorder } from './request-recorder.ts'
import { DEFAULT_BODY_DEADLINES, type Proxy, type ProxyOptions } from './options.ts'
import { createOriginRules } from './origins.ts'
import { createRuntimes } from './runtimes.ts'
import { createSessions } from './sessions.ts'

/** Milliseconds for aborted requests to end. */
const LAST_REQUESTS_MS = 1000
const DEFAULT_BUFFERED_BODIES_BYTES = 256 * 1024 * 1024
const DEFAULT_UNREAD_BYTES = 64 * 1024 * 1024

/**
 * Starts the proxy: listens and serves `runtime` until it is swapped or drained. Throws `config_error` if it cannot
 * listen (the cause has the system's code).
 */
export async function createProxy(options: ProxyOptions): Promise<Proxy> {
  const { clock, monotonicClock = MONOTONIC_CLOCK, log, metrics } = options
  const { tls, allowedOrigins, allowedHosts, headerLimitBytes, trustedProxies, connectionLimit } = options.listen
  const { bufferedBodiesBytes: keptBytes = DEFAULT_BUFFERED_BODIES_BYTES } = options.listen
  const { unreadAnswersBytes = DEFAULT_UNREAD_BYTES, streamedBodiesBytes = unreadAnswersBytes } = options.listen
  const { address: where } = options.listen
  const address = typeof where === 'string' ? parseListenAddress(where) : where
  const deadlines = { ...DEFAULT_BODY_DEADLINES, ...options.deadlines }
  const runtimes = createRuntimes(options.runtime, log, (route) => options.onRouteGone?.(route))
  const active = new IntrusiveSet<InboundRequest>()
  const bodyWatch = createBodyWatch(active, monotonicClock, {
    ...deadlines,
    keptBytes,
    streamedBytes: streamedBodiesBytes,
  })
  const revokedStreams = watchRevoked(active)
  const handler = createHandler({
    active,
    rules: { origins: createOriginRules({ address, allowedOrigins, allowedHosts }), headerLimitBytes },
    runtimes,
    sessions: createSessions(options.sessionKey),
    bodyWatch,
    recorder: createRequestRecorder({ log, metrics, clock, logsClients: options.logsClients }),
    observer: options.observer,
    clock,
    newRequestId: options.newRequestId ?? createRequestIds(),
    // Not on loopback: a browser would apply it to all ports of localhost.
    isStrictTransport: tls !== undefined && !address.isLoopback,
  })
  const listener = await openListener<InboundRequest>({
    address,
    tls,
    acceptedAt: options.listen.acceptedAt,
    headerLimitBytes,
    headerLimitSetting: HEADER_LIMIT,
    readBeyondBytes: READ_BEYOND_BYTES,
    deadlines,
    ...(trustedProxies === undefined ? {} : { trustedProxies }),
    ...(connectionLimit === undefined ? {} : { maxConnections: connectionLimit }),
    unreadAnswersBytes,
    // Each request may need a connection to its backend.
    descriptorsPerConnection: 2,
    // Java's client requests h2c with its first request; a server may ignore that (RFC 9110 §7.8).
    servesUpgrade: (upgrade) => upgrade.toLowerCase() !== 'h2c',
    serve: (request, response, connection) => handler.handle(request, response, connection),
    refusal(failure, inbound) {
      inbound?.refuse(failure)
      return { headers: { 'content-type': 'application/json' }, body: mcpFailureBody(failure, inbound?.id ?? '') }
    },
    onCut: (failure, inbound) => (inbound.cutFor ??= failure),
    monotonicClock,
    log,
    metrics,
  }).catch((error: unknown) => {
    bodyWatch.close()
    revokedStreams.close()
    throw error
  })

  const end = async (graceMs: number): Promise<void> => {
    await drainProxy({ listener, handler, active, log, graceMs })
    bodyWatch.close()
    revokedStreams.close()
    await runtimes.close(LAST_REQUESTS_MS)
  }
  let ended: Promise<void> | undefined
  return {
    url: listener.url,
    connect: () => listener.connect(),
    take: (socket) => listener.take(socket),
    swap: (runtime) => runtimes.swap(runtime),
    drain: (graceMs) => (ended ??= end(graceMs)),
  }
}

const ID_BYTES = 12
const POOL = 256

/** A source of request ids: 96 random bits each, base64url. Random bytes are fetched in batches. */
function createRequestIds(): () => string {
  const pool = Buffer.alloc(ID_BYTES * POOL)
  let at = pool.length
  return () => {
    if (at === pool.length) {
      randomFillSync(pool)
      at = 0
    }
    at += ID_BYTES
    return pool.toString('base64url', at - ID_BYTES, at)
  }
}

/** All replicas reject the tokens of a revoked session within 2 s (authserver.md §3); this interval is additional. */
const LOOK_EVERY_MS = 500

/** Ends GET streams whose session was revoked: their token is not presented again. */
function watchRevoked(active: IntrusiveSet<InboundRequest>): { close(): void } {
  const timer = setInterval(() => {
    for (const inbound of active) inbound.endIfRevoked()
  }, LOOK_EVERY_MS).unref()
  return { close: () => clearInterval(timer) }
}
