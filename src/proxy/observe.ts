import { createHash } from 'node:crypto'
import {
  causeOf,
  type AuthenticatedCaller,
  type Clock,
  type Failure,
  type Log,
  type Metrics,
  type RequestResult,
  type Route,
} from '../core/index.ts'
import type { Exchange } from './exchange.ts'

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]

export interface RequestRecorder {
  /** One log line and the counters for a request that is over. */
  finished(exchange: Exchange, result: RequestResult): void
  readonly activeStreams: { add(by: number): void }
}

interface Counter {
  add(by?: number): void
}

interface Histogram {
  observe(value: number): void
}

/** Children of one route, made once: label values are joined on each `with`, which is too much for each request. */
interface RouteMetrics {
  readonly requests: Map<string, Counter>
  /** Without a reason, by status: nearly all requests. */
  readonly plain: Map<number, Counter>
  readonly duration: Histogram
  readonly firstByte: Histogram
}

/** What is written about requests: never a token, a subject, a query or a path
 * that a caller chose. Labels are route, type, status, reason. */
export function createRequestRecorder(options: {
  readonly log: Log
  readonly metrics: Metrics
  readonly clock: Clock
}): RequestRecorder {
  const { log, metrics, clock } = options
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
  // Routes of a replaced configuration go with it.
  const routes = new WeakMap<Route, RouteMetrics>()
  const hashes = new WeakMap<AuthenticatedCaller, string>()

  const metricsFor = (route: string, type: string): RouteMetrics => ({
    requests: new Map(),
    plain: new Map(),
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

  const callerHash = (caller: AuthenticatedCaller): string => {
    let hash = hashes.get(caller)
    if (hash === undefined) {
      hash = createHash('sha256')
        .update(JSON.stringify([caller.issuer, caller.identity]))
        .digest('hex')
        .slice(0, 16)
      hashes.set(caller, hash)
    }
    return hash
  }

  return {
    activeStreams,
    finished(exchange, result) {
      const { route: matched, caller } = exchange
      const route = matched?.name ?? ''
      const type = matched?.type ?? ''
      const { status, reason, firstByteAtMs, failure } = result
      const own = metricsOf(matched)
      const elapsedMs = clock.now() - exchange.receivedAtMs
      countOf(own, status, reason, () => requests.with(route, type, String(status), reason)).add()
      own.duration.observe(elapsedMs / 1000)
      const firstByteMs = firstByteAtMs === undefined ? undefined : firstByteAtMs - exchange.receivedAtMs
      if (firstByteMs !== undefined) own.firstByte.observe(firstByteMs / 1000)
      const fields = {
        requestId: exchange.id,
        route,
        type,
        method: exchange.method,
        endpoint: exchange.localHandler?.path,
        caller: caller?.kind === 'authenticated' ? callerHash(caller) : undefined,
        status,
        reason: reason === '' ? undefined : reason,
        durationMs: elapsedMs,
        firstByteMs,
        attempts: exchange.attempts,
      }
      if (failure === undefined) log.info(fields, 'request')
      else logFailure(log, fields, failure)
    },
  }
}

function countOf(own: RouteMetrics, status: number, reason: string, make: () => Counter): Counter {
  if (reason === '') {
    let child = own.plain.get(status)
    if (child === undefined) own.plain.set(status, (child = make()))
    return child
  }
  const key = `${status} ${reason}`
  let child = own.requests.get(key)
  if (child === undefined) own.requests.set(key, (child = make()))
  return child
}

/** The same line with what the client was not told; louder where the person who runs the proxy has to do something. */
function logFailure(log: Log, fields: object, failure: Failure): void {
  const cause = failure.cause === undefined ? undefined : causeOf(failure.cause)
  const told = { ...fields, detail: failure.detail, cause }
  if (failure.code === 'internal_error') log.error({ ...told, at: firstFrame(failure.cause) }, 'request')
  else if (failure.status >= 500) log.warn(told, 'request')
  else log.info(told, 'request')
}

/** Where a bug is: the first stack frame holds a place in our code, no text from outside. */
function firstFrame(cause: unknown): string | undefined {
  return cause instanceof Error
    ? cause.stack
        ?.split('\n')
        .find((line) => /^\s+at /.test(line))
        ?.trim()
    : undefined
}
