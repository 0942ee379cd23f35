import { detectResources, envDetector } from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace'
import type { TraceSettings } from './settings.ts'
import { openTracer, type SpanTarget } from './tracer.ts'

/**
 * The receiver of the process. The exporter takes endpoint, headers, compression, certificates and timeout from the standard
 * variables by itself, and connects by itself (ADR 0081). `version` is that of this product.
 */
export const openOwnReceiver = async (settings: TraceSettings, version: string): Promise<SpanTarget> =>
  openTracer({
    attributes: {},
    detected: detectResources({ detectors: [envDetector] }),
    sampler: samplerOf(settings),
    exporter: await exporterOf(settings),
    batch: settings.batch,
    version,
  })

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
