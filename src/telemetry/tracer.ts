import { randomUUID } from 'node:crypto'
import type { Attributes, Tracer } from '@opentelemetry/api'
import { defaultResource, type Resource, resourceFromAttributes } from '@opentelemetry/resources'
import { BatchSpanProcessor, type Sampler, type SpanExporter, TracerProvider } from '@opentelemetry/sdk-trace'
import type { TraceSettings } from './settings.ts'

/** Destination of spans. */
export interface SpanTarget {
  readonly tracer: Tracer
  /** Exports pending spans, for at most five seconds. */
  close(): Promise<void>
}

const CLOSE_MS = 5000

interface TracerOptions {
  /** Resource attributes that override the defaults. */
  readonly attributes: Attributes
  /** Resource of the environment; overrides all others. */
  readonly detected?: Resource
  readonly sampler: Sampler
  readonly exporter: SpanExporter
  readonly batch: TraceSettings['batch']
  /** Version of this product. */
  readonly version: string
}

/** Creates spans and exports them in batches. */
export function openTracer({ attributes, detected, sampler, exporter, batch, version }: TracerOptions): SpanTarget {
  const own = resourceFromAttributes({
    'service.name': 'mcp-extauth',
    'service.version': version,
    'service.instance.id': randomUUID(),
    ...attributes,
  })
  const resource = defaultResource().merge(own)
  const provider = new TracerProvider({
    resource: detected === undefined ? resource : resource.merge(detected),
    sampler,
    spanProcessors: [new BatchSpanProcessor({ exporter, ...batch })],
  })
  return {
    tracer: provider.getTracer('mcp-extauth', version),
    async close() {
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, CLOSE_MS)))
      // An unavailable receiver loses spans and never delays the exit.
      await Promise.race([provider.shutdown().catch(() => undefined), late])
      clearTimeout(timer)
    },
  }
}
