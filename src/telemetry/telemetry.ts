import { AsyncLocalStorage } from 'node:async_hooks'
import { randomUUID } from 'node:crypto'
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace, type Tracer } from '@opentelemetry/api'
import { envDetector, defaultResource, detectResources, resourceFromAttributes } from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { Inbound, Outbound, RequestObserver } from '../core/index.ts'
import { methodOf, type SpanPlace, RequestSpans, serverOf } from './request-spans.ts'
import type { TraceSettings } from './settings.ts'
import { parseTraceparent } from './traceparent.ts'

/** Traces of requests and of the calls that they lead to, on their way to an OTLP receiver. */
export interface Telemetry {
  readonly observer: RequestObserver
  /** The same client, with a span for each request; `service` says which service it is for, never a URL. */
  traced(outbound: Outbound, service: string): Outbound
  /** Exports what is left, for at most five seconds. */
  close(): Promise<void>
}

const CLOSE_MS = 5000

/**
 * Starts tracing. The exporter takes endpoint, headers, compression, certificates and timeout from the standard variables of the
 * process by itself, and connects by itself (ADR 0081). `version` is that of this product.
 */
export async function openTelemetry(settings: TraceSettings, version: string): Promise<Telemetry> {
  const detected = detectResources({ detectors: [envDetector] })
  const own = resourceFromAttributes({
    'service.name': 'mcp-extauth',
    'service.version': version,
    'service.instance.id': randomUUID(),
  })
  const provider = new TracerProvider({
    resource: defaultResource().merge(own).merge(detected),
    sampler: samplerOf(settings),
    spanProcessors: [new BatchSpanProcessor({ exporter: await exporterOf(settings), ...settings.batch })],
  })
  const tracer = provider.getTracer('mcp-extauth', version)
  const places = new AsyncLocalStorage<SpanPlace | undefined>()
  return {
    observer: { arrived: (inbound) => follow(tracer, places, inbound) },
    traced: (outbound, service) => ({
      request: (request) => {
        const { url, method } = request
        const parent = places.getStore()?.current ?? ROOT_CONTEXT
        const attributes = { 'http.request.method': method, 'extauth.service': service, ...serverOf(url) }
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
      },
      close: () => outbound.close(),
    }),
    async close() {
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, CLOSE_MS)))
      // A receiver that is away costs spans, never a stop.
      await Promise.race([provider.shutdown().catch(() => undefined), late])
      clearTimeout(timer)
    },
  }
}

function follow(tracer: Tracer, places: AsyncLocalStorage<SpanPlace | undefined>, inbound: Inbound) {
  const remote = parseTraceparent(single(inbound.request.headers['traceparent']))
  const parent = remote === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, remote)
  const method = methodOf(inbound.method)
  const span = tracer.startSpan(method, { kind: SpanKind.SERVER, startTime: inbound.receivedAtMs }, parent)
  if (!span.isRecording()) {
    // Nobody follows it, so that it costs what it costs without traces; its headers pass as they came.
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
  const place: SpanPlace = { current: context }
  // Everything that this request leads to runs in what follows.
  places.enterWith(place)
  return new RequestSpans(tracer, span, context, place, inbound)
}

const schemeOf = ({ request }: Inbound): string => ('encrypted' in request.socket ? 'https' : 'http')

const single = (value: string | readonly string[] | undefined): string | undefined =>
  typeof value === 'string' ? value : undefined

/** Only the one that is wanted is loaded. */
async function exporterOf({ protocol }: TraceSettings): Promise<SpanExporter> {
  if (protocol === 'http/json') return new (await import('@opentelemetry/exporter-trace-otlp-http')).OTLPTraceExporter()
  return new (await import('@opentelemetry/exporter-trace-otlp-proto')).OTLPTraceExporter()
}

function samplerOf({ sampler, ratio }: TraceSettings): Sampler {
  const root: Sampler = sampler.endsWith('always_on')
    ? new AlwaysOnSampler()
    : sampler.endsWith('always_off')
      ? new AlwaysOffSampler()
      : new TraceIdRatioBasedSampler(ratio)
  return sampler.startsWith('parentbased_') ? new ParentBasedSampler({ root }) : root
}
