import { AsyncLocalStorage } from 'node:async_hooks'
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace, type Tracer } from '@opentelemetry/api'
import type { Inbound, Outbound, RequestObserver, RequestTrace } from '../core/index.ts'
import { methodOf, type SpanParent, RequestSpans, serverOf } from './request-spans.ts'
import { RoutedSpans } from './routed-spans.ts'
import type { SpanTarget } from './tracer.ts'
import { parseTraceparent } from './traceparent.ts'

/** Exports traces of requests and of their outbound calls to OTLP receivers. */
export interface Telemetry {
  readonly observer: RequestObserver
  /** Wraps a client with a span per request. `service` is its name, never a URL. */
  traced(outbound: Outbound, service: string): Outbound
  /** Sets the receivers of routes, by name. Other routes use that of the process. */
  use(ofRoutes: ReadonlyMap<string, SpanTarget>): void
}

/** Starts tracing. `own` is the receiver of the process, if any. The owner closes receivers. */
export function createTelemetry(own: SpanTarget | undefined): Telemetry {
  const places = new AsyncLocalStorage<SpanParent | undefined>()
  let ofRoutes: ReadonlyMap<string, SpanTarget> = new Map()
  const begin = (inbound: Inbound, route: string | undefined): RequestTrace | undefined => {
    const target = (route === undefined ? undefined : ofRoutes.get(route)) ?? own
    if (target !== undefined) return follow(target.tracer, places, inbound)
    places.enterWith(undefined)
    return undefined
  }
  return {
    observer: {
      // The receiver is known with the route, if routes have their own.
      arrived: (inbound) => (ofRoutes.size === 0 ? begin(inbound, undefined) : new RoutedSpans(inbound, begin)),
    },
    use: (next) => void (ofRoutes = next),
    traced: (outbound, service) => ({
      request: (request) => {
        const place = places.getStore()
        const tracer = place?.tracer ?? own?.tracer
        if (tracer === undefined) return outbound.request(request)
        return tracedRequest(tracer, place, outbound, request, service)
      },
      close: () => outbound.close(),
    }),
  }
}

function tracedRequest(
  tracer: Tracer,
  place: SpanParent | undefined,
  outbound: Outbound,
  request: Parameters<Outbound['request']>[0],
  service: string,
): ReturnType<Outbound['request']> {
  const { url, method } = request
  const attributes = { 'http.request.method': method, 'extauth.service': service, ...serverOf(url) }
  const parent = place?.current ?? ROOT_CONTEXT
  const span = tracer.startSpan(`${method} ${service}`, { kind: SpanKind.CLIENT, attributes }, parent)
  if (!span.isRecording()) return outbound.request(request)
  return outbound.request(request).then(
    (response) => {
      span.setAttribute('http.response.status_code', response.status)
      if (response.status >= 400)
        span.setAttribute('error.type', String(response.status)).setStatus({ code: SpanStatusCode.ERROR })
      span.end()
      return response
    },
    (error: unknown) => {
      const { kind } = error as { kind?: unknown }
      span.setAttribute('error.type', typeof kind === 'string' ? kind : '_OTHER')
      span.setStatus({ code: SpanStatusCode.ERROR }).end()
      throw error
    },
  )
}

function follow(
  tracer: Tracer,
  places: AsyncLocalStorage<SpanParent | undefined>,
  inbound: Inbound,
): RequestTrace | undefined {
  const remote = parseTraceparent(single(inbound.request.headers['traceparent']))
  const parent = remote === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, remote)
  const method = methodOf(inbound.method)
  const span = tracer.startSpan(method, { kind: SpanKind.SERVER, startTime: inbound.receivedAtMs }, parent)
  if (!span.isRecording()) {
    // Not traced: no overhead, and headers stay unchanged.
    places.enterWith(undefined)
    return undefined
  }
  const { httpVersion } = inbound.request
  span.setAttributes({
    'http.request.method': method,
    'network.protocol.version': httpVersion,
    'url.scheme': schemeOf(inbound),
  })
  const context = trace.setSpan(parent, span)
  const place: SpanParent = { current: context, tracer }
  // Asynchronous calls of this request inherit the place.
  places.enterWith(place)
  return new RequestSpans(tracer, span, context, place, inbound)
}

const schemeOf = ({ request }: Inbound): string => ('encrypted' in request.socket ? 'https' : 'http')

const single = (value: string | readonly string[] | undefined): string | undefined =>
  typeof value === 'string' ? value : undefined
