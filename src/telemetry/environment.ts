import { detectResources, envDetector } from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace'
import type { Log, Outbound } from '../core/index.ts'
import { exporterTo } from './receiver.ts'
import type { TraceSettings } from './settings.ts'
import { openTracer, type SpanTarget } from './tracer.ts'

/**
 * Opens the receiver configured by the environment, for the whole process. `outbound` connects to it; `version` is
 * this product's.
 */
export const openProcessReceiver = (
  settings: TraceSettings,
  { outbound, log, version }: { readonly outbound: Outbound; readonly log: Log; readonly version: string },
): SpanTarget =>
  openTracer({
    attributes: {},
    detected: detectResources({ detectors: [envDetector] }),
    sampler: samplerOf(settings),
    exporter: exporterTo({
      name: 'OTEL_EXPORTER_OTLP_ENDPOINT',
      url: settings.url,
      headers: () => ({
        ...Object.fromEntries(Object.entries(settings.headers).map(([name, value]) => [name, value.reveal()])),
        'content-type': settings.protocol === 'http/json' ? 'application/json' : 'application/x-protobuf',
      }),
      renew: () => Promise.resolve(false),
      isJson: settings.protocol === 'http/json',
      isCompressed: settings.isCompressed,
      outbound,
      log,
    }),
    batch: settings.batch,
    version,
  })

function samplerOf({ sampler, ratio }: TraceSettings): Sampler {
  const root: Sampler = sampler.endsWith('always_on')
    ? new AlwaysOnSampler()
    : sampler.endsWith('always_off')
      ? new AlwaysOffSampler()
      : new TraceIdRatioBasedSampler(ratio)
  return sampler.startsWith('parentbased_') ? new ParentBasedSampler({ root }) : root
}
