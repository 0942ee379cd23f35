import { randomUUID } from 'node:crypto'
import type { Attributes, Tracer } from '@opentelemetry/api'
import { defaultResource, type Resource, resourceFromAttributes } from '@opentelemetry/resources'
import { BatchSpanProcessor, type Sampler, type SpanExporter, TracerProvider } from '@opentelemetry/sdk-trace'
import type { TraceSettings } from './settings.ts'

/** Where spans go. */
export interface SpanTarget {
  readonly tracer: Tracer
  /** Exports what is left, for at most five seconds. */
  close(): Promise<void>
}

const CLOSE_MS = 5000

interface TracerOptions {
  /** Attributes of the resource that come before ours. */
  readonly attributes: Attributes
  /** What the environment says of the resource; it comes before everything. */
  readonly detected?: Resource
  readonly sampler: Sampler
  readonly exporter: SpanExporter
  readonly batch: TraceSettings['batch']
  /** Of this product. */
  readonly version: string
}

/** What makes spans, and brings them away in batches. */
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
      // A receiver that is away costs spans, never a stop.
      await Promise.race([provider.shutdown().catch(() => undefined), late])
      clearTimeout(timer)
    },
  }
}
