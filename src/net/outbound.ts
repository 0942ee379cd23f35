import type { Dispatcher } from 'undici'
import {
  after,
  type Clock,
  type Metrics,
  type MonotonicClock,
  type MonotonicMs,
  monotonicNow,
  type Outbound,
  OutboundError,
  type OutboundRequest,
  type OutboundResponse,
  type Secret,
} from '../core/index.ts'
import { parseRetryAfter } from '../http/index.ts'
import { asConnector, promised } from './connector.ts'
import {
  createTunnelConnect,
  egressProxyFor,
  type EgressProxy,
  forwarderFor,
  forwardThroughProxy,
  refusedByProxy,
  urlOf,
} from './egress.ts'
import { placed, within } from './limits.ts'
import { checkHttpClientInUse } from './self-check.ts'
import { roundTrip } from './round-trip.ts'
import {
  createAddressCheck,
  createGuardedConnect,
  type GuardOptions,
  resolveChecked,
  type Resolver,
  systemResolver,
} from './guard.ts'
import type { BreakerOptions } from './circuit.ts'
import { createProtections, type Protections } from './protections.ts'
import { buildConnector, undici } from './undici.ts'

export interface OutboundOptions {
  /** Name for metrics: a provider or resource, never a URL. */
  readonly name: string
  /** Milliseconds for the whole round trip, including queueing, connecting and the retry. Default 5000. */
  readonly deadlineMs?: number
  /** Maximum bytes of a response body. Default 1 MiB. */
  readonly maxBytes?: number
  /**
   * PEM CA certificates that replace the system's, read before each request. A change opens new connections; undefined
   * blocks requests.
   */
  readonly caCert?: () => Buffer | undefined
  /** Client certificate, read before each request. A change opens new connections; undefined blocks requests. */
  readonly clientCertificate?: (() => ClientCertificate | undefined) | undefined
  /** Allowed addresses. Default: all, by the operator's choice. */
  readonly guard?: GuardOptions
  /**
   * Identity of the service, such as its URL; never printed. With `protections`, all clients of a service share one
   * breaker and one concurrency limit, across reloads. Default: per client.
   */
  readonly service?: string
  readonly protections?: Protections
  /** Circuit breaker; false for none. Default: see `BreakerOptions`. */
  readonly breaker?: BreakerOptions | false
  /** Called when the circuit closes. */
  readonly onRecovered?: () => void
  /** Concurrent calls. Default 64. */
  readonly maxConcurrent?: number
  /** Queued calls; beyond, a call of the caller with most queued calls is rejected. Default 1024. */
  readonly maxQueued?: number
  /**
   * One retry with jitter after a connection error, 502, 503 or 504, within the deadline and after `Retry-After`.
   * Default false.
   */
  readonly retry?: boolean
  readonly clock: Clock
  /** Monotonic clock for circuits and cool-downs. Default `MONOTONIC_CLOCK`. */
  readonly monotonicClock?: MonotonicClock
  readonly metrics?: Metrics
  /** 0 ≤ n < 1, for the retry's jitter. Default Math.random. */
  readonly random?: () => number
  /** For tests. Default: the operating system. */
  readonly resolver?: Resolver
  readonly egressProxy?: EgressProxy
  /** The service is on this machine or network: bypasses the egress proxy. Default false. */
  readonly bypassEgressProxy?: boolean
}

/** A PEM certificate with chain and key. The object is the same while the certificate is. */
export interface ClientCertificate {
  readonly cert: Buffer
  readonly key: Secret
}

interface TlsMaterial {
  readonly ca: Buffer | undefined
  readonly client: ClientCertificate | undefined
}

const DEFAULT_DEADLINE_MS = 5000
const DEFAULT_MAX_BYTES = 1024 * 1024
const DEFAULT_MAX_CONCURRENT = 64
const DEFAULT_MAX_QUEUED = 1024
const RETRY_BASE_MS = 50
const RETRY_JITTER_MS = 150
const RETRIED_STATUSES: ReadonlySet<number> = new Set([502, 503, 504])

/** One set of connections with the same CA certificates, guard and egress. */
const createConnections = (options: OutboundOptions, deadlineMs: number, { ca, client }: TlsMaterial): Dispatcher => {
  const egressProxy = options.bypassEgressProxy === true ? undefined : options.egressProxy
  const proxyFor = (url: URL): URL | undefined => egressProxyFor(url, egressProxy)
  const { Agent, Pool } = undici()
  const tls = buildConnector({
    timeout: deadlineMs,
    allowH2: false,
    ...(ca === undefined ? {} : { ca }),
    ...(client === undefined ? {} : { cert: client.cert, key: client.key.reveal() }),
  })
  const plain = promised(tls)
  const direct =
    options.guard === undefined && options.resolver === undefined
      ? plain
      : createGuardedConnect(plain, createAddressCheck(options.guard), options.resolver ?? systemResolver)
  const tunnelled = createTunnelConnect(plain, proxyFor, deadlineMs)
  const connect = asConnector((target) => (proxyFor(urlOf(target)) === undefined ? direct : tunnelled)(target))
  // The deadline of the round trip replaces undici's timers.
  const common = {
    headersTimeout: 0,
    bodyTimeout: 0,
    allowH2: false,
    keepAliveTimeout: 4000,
    keepAliveMaxTimeout: 4000,
  }
  return new Agent({
    ...common,
    connect,
    factory: (origin, opts) => {
      const url = new URL(origin)
      const proxy = url.protocol === 'http:' ? proxyFor(url) : undefined
      if (proxy === undefined) return new Pool(origin, opts)
      return forwardThroughProxy(new Pool(proxy.origin, { ...common, connect: tls }), url.origin, proxy)
    },
  })
}

/**
 * Checks URLs for an egress proxy, which resolves names itself: the guard checks literal addresses and names that
 * resolve here. Names known only to the proxy pass.
 */
const createProxiedCheck = (options: OutboundOptions): ((url: string) => Promise<void>) | undefined => {
  const { guard, egressProxy, bypassEgressProxy = false } = options
  if (guard === undefined || egressProxy === undefined || bypassEgressProxy) return undefined
  const check = createAddressCheck(guard)
  return async (text) => {
    const url = new URL(text)
    if (egressProxyFor(url, egressProxy) === undefined) return
    try {
      await resolveChecked(url.hostname.replace(/^\[(.*)\]$/, '$1'), check, options.resolver ?? systemResolver)
    } catch (error) {
      if (error instanceof OutboundError) throw error
    }
  }
}

/** Current TLS material. Throws `OutboundError` if unavailable: there is no fallback. */
const materialOf = ({ caCert, clientCertificate }: OutboundOptions): TlsMaterial => {
  const [ca, client] = [caCert?.(), clientCertificate?.()]
  const lacks = (caCert !== undefined && ca === undefined) || (clientCertificate !== undefined && client === undefined)
  if (lacks) throw new OutboundError('unreachable')
  return { ca, client }
}

const isSame = (one: TlsMaterial, other: TlsMaterial): boolean =>
  one.client === other.client && (one.ca === other.ca || (one.ca !== undefined && other.ca?.equals(one.ca) === true))

/**
 * Creates a client for one service that is not a backend: identity provider, token endpoint, STS, registry source. All
 * limits are built in (see the options); redirects are returned. `request` throws only `OutboundError`.
 */
export const createOutbound = (options: OutboundOptions): Outbound => {
  const deadlineMs = options.deadlineMs ?? DEFAULT_DEADLINE_MS
  const maxBytes = options.maxBytes ?? DEFAULT_MAX_BYTES
  const maxConcurrent = options.maxConcurrent ?? DEFAULT_MAX_CONCURRENT
  const random = options.random ?? Math.random
  const { service, clock, monotonicClock, metrics } = options
  const shared = service === undefined ? undefined : options.protections
  const client = { name: options.name, onRecovered: options.onRecovered }
  const { protect, release } = (shared ?? createProtections({ clock, monotonicClock, metrics })).share(
    service ?? '',
    client,
    {
      breaker: options.breaker ?? {},
      maxConcurrent,
      maxQueued: options.maxQueued ?? DEFAULT_MAX_QUEUED,
    },
  )
  const checkProxied = createProxiedCheck(options)
  let material: TlsMaterial = { ca: options.caCert?.(), client: options.clientCertificate?.() }
  // Created on the first request: many clients send none.
  let connections: Dispatcher | undefined
  let isClosed = false

  const current = (): Dispatcher => {
    if (isClosed) throw new OutboundError('closed')
    if (options.caCert !== undefined || options.clientCertificate !== undefined) {
      const now = materialOf(options)
      if (!isSame(material, now)) {
        // Closes after its last round trip.
        void connections?.close()
        connections = undefined
        material = now
      }
    }
    return (connections ??= createConnections(options, deadlineMs, material))
  }

  const attempt = async (request: OutboundRequest, endsAtMs: MonotonicMs): Promise<OutboundResponse> => {
    const dispatcher = current()
    await checkHttpClientInUse()
    if (monotonicNow() >= endsAtMs) throw new OutboundError('timeout')
    if (checkProxied !== undefined) await within(checkProxied(request.url), endsAtMs)
    try {
      const response = await roundTrip(dispatcher, request, { deadlineMs: endsAtMs - monotonicNow(), maxBytes })
      const proxy =
        response.status === 407
          ? forwarderFor(new URL(request.url), options.bypassEgressProxy === true ? undefined : options.egressProxy)
          : undefined
      if (proxy !== undefined) throw refusedByProxy(proxy, response.status)
      return response
    } catch (error) {
      // The proxy canceled it, which is no evidence against the service.
      throw isClosed ? new OutboundError('closed', { cause: error }) : error
    }
  }

  const isWorthRepeating = (result: OutboundResponse | OutboundError): boolean =>
    result instanceof OutboundError ? result.kind === 'unreachable' : RETRIED_STATUSES.has(result.status)

  const attempts = async (request: OutboundRequest, endsAtMs: MonotonicMs): Promise<OutboundResponse> => {
    if (options.retry !== true) return attempt(request, endsAtMs)
    const first = await attempt(request, endsAtMs).catch((error: unknown) => {
      if (error instanceof OutboundError) return error
      throw error
    })
    const asked =
      first instanceof OutboundError ? undefined : parseRetryAfter(first.headers['retry-after'], clock.now())
    const pauseMs = Math.max(RETRY_BASE_MS + random() * RETRY_JITTER_MS, (asked ?? 0) * 1000)
    const hasTime = after(monotonicNow(), pauseMs) < endsAtMs
    if (isClosed || !hasTime || !isWorthRepeating(first)) {
      if (first instanceof OutboundError) throw first
      return first
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
    return attempt((await request.again?.()) ?? request, endsAtMs)
  }

  return {
    async request(request) {
      const latestMs = after(monotonicNow(), deadlineMs)
      const endsAtMs = request.endsAtMs !== undefined && request.endsAtMs < latestMs ? request.endsAtMs : latestMs
      const { onBehalfOf } = request
      try {
        return await protect({
          onBehalfOf,
          deadlineMs,
          endsAtMs,
          run: async (isAgain) => attempts((isAgain ? await request.again?.() : undefined) ?? request, endsAtMs),
        })
      } catch (error) {
        const failed = error instanceof OutboundError ? error : new OutboundError('unreachable', { cause: error })
        throw placed(failed, request.url, { ms: deadlineMs, bytes: maxBytes, atOnce: maxConcurrent })
      }
    },
    close: async () => {
      if (!isClosed) release()
      isClosed = true
      await connections?.destroy()
    },
  }
}
