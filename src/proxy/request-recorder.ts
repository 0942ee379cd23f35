import {
  callerHash,
  logRequest,
  refusedFrom,
  secretsOfRequest,
  type Clock,
  type Log,
  type Metrics,
  type RefusedFrom,
  type RequestResult,
  type Route,
} from '../core/index.ts'
import { unverifiedIn } from '../authenticate/index.ts'
import type { InboundRequest } from './inbound-request.ts'

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]

export interface RequestRecorder {
  /** Writes one log line and the counters of a finished request. */
  finished(inbound: InboundRequest, result: RequestResult): void
  readonly activeStreams: { add(by: number): void }
}

interface Counter {
  add(by?: number): void
}

interface Histogram {
  observe(value: number): void
}

/** Metrics of one route, created once: `with` joins label values, which is too expensive per request. */
interface RouteMetrics {
  readonly requests: Map<string, Counter>
  /** Without a reason, by status: nearly all requests. */
  readonly plain: Map<number, Counter>
  /** Status of the last request without a reason: most repeat it. */
  lastStatus: number
  last: Counter | undefined
  readonly duration: Histogram
  readonly firstByte: Histogram
}

/** Writes one line per request and its counters, whose labels are route, type, status and reason. */
export function createRequestRecorder(options: {
  readonly log: Log
  readonly metrics: Metrics
  readonly clock: Clock
  /** Log the client's address for rejected requests. Default true. */
  readonly logsClients?: boolean | undefined
}): RequestRecorder {
  const { log, metrics, clock, logsClients = true } = options
  const requests = metrics.counter('extauth_requests_total', 'Requests by route, type, status and reason of failure.', [
    'route',
    'type',
    'status',
    'reason',
  ])
  const byRoute = ['route', 'type']
  const duration = metrics.histogram(
    'extauth_request_duration_seconds',
    'Time from the header section of a request to the last byte of its answer.',
    byRoute,
    SECONDS,
  )
  const firstByte = metrics.histogram(
    'extauth_time_to_first_byte_seconds',
    'Time from the header section of a request to the first byte of the answer of the backend.',
    byRoute,
    SECONDS,
  )
  const activeStreams = metrics.gauge('extauth_active_streams', 'Event streams that are open now.').with()
  // Routes of a replaced configuration are released with it.
  const routes = new WeakMap<Route, RouteMetrics>()

  const metricsFor = (route: string, type: string): RouteMetrics => ({
    requests: new Map(),
    plain: new Map(),
    lastStatus: 0,
    last: undefined,
    duration: duration.with(route, type),
    firstByte: firstByte.with(route, type),
  })
  const unmatched = metricsFor('', '')

  const metricsOf = (route: Route | undefined): RouteMetrics => {
    if (route === undefined) return unmatched
    let found = routes.get(route)
    if (found === undefined) routes.set(route, (found = metricsFor(route.name, route.type)))
    return found
  }

  return {
    activeStreams,
    finished(inbound, result) {
      const { route: matched, caller } = inbound
      const route = matched?.name ?? ''
      const type = matched?.type ?? ''
      const { status, reason, firstByteAtMs, failure } = result
      const own = metricsOf(matched)
      const elapsedMs = clock.now() - inbound.receivedAtMs
      countOf(own, status, reason, () => requests.with(route, type, String(status), reason)).add()
      own.duration.observe(elapsedMs / 1000)
      const firstByteMs = firstByteAtMs === undefined ? undefined : firstByteAtMs - inbound.receivedAtMs
      if (firstByteMs !== undefined) own.firstByte.observe(firstByteMs / 1000)
      const line = {
        requestId: inbound.id,
        route,
        type,
        method: inbound.method,
        endpoint: inbound.localHandler?.path,
        caller: callerHash(caller),
        status,
        reason: reason === '' ? undefined : reason,
        durationMs: elapsedMs,
        firstByteMs,
        attempts: inbound.attempts,
        from: failure === undefined ? undefined : whoWasRefused(inbound, failure.status, logsClients),
      }
      logRequest(log, line, failure, () => secretsOfRequest(inbound.request.rawHeaders))
    },
  }
}

function whoWasRefused(inbound: InboundRequest, status: number, logsClients: boolean): RefusedFrom | undefined {
  const { headersDistinct, headers } = inbound.request
  return refusedFrom(status, {
    client: logsClients ? inbound.peer : undefined,
    userAgent: headers['user-agent'],
    path: inbound.path,
    // An authenticated caller has a hash in the line instead.
    unverified: inbound.caller === undefined ? unverifiedIn(headersDistinct['authorization'] ?? []) : undefined,
  })
}

function countOf(own: RouteMetrics, status: number, reason: string, make: () => Counter): Counter {
  if (reason === '') {
    if (own.last !== undefined && own.lastStatus === status) return own.last
    let child = own.plain.get(status)
    if (child === undefined) own.plain.set(status, (child = make()))
    own.lastStatus = status
    own.last = child
    return child
  }
  const key = `${status} ${reason}`
  let child = own.requests.get(key)
  if (child === undefined) own.requests.set(key, (child = make()))
  return child
}
