import type { Secret } from '../core/index.ts'

/** The standard OpenTelemetry variables for traces, validated (OTLP exporter and SDK specifications). */
export interface TraceSettings {
  /** URL of the export. */
  readonly url: string
  readonly protocol: 'http/protobuf' | 'http/json'
  /** Header values are usually credentials. */
  readonly headers: Readonly<Record<string, Secret>>
  /** Timeout of an export in milliseconds. Default 10,000. */
  readonly timeoutMs: number
  readonly isCompressed: boolean
  /** PEM files: CA certificates that replace the system's, and the client certificate with its key. */
  readonly files: { readonly ca?: string; readonly client?: { readonly certificate: string; readonly key: string } }
  readonly sampler: SamplerName
  /** Share of sampled traces that start here, 0 to 1; for ratio samplers. */
  readonly ratio: number
  /** Export interval in milliseconds, queue size, batch size, export timeout in milliseconds. */
  readonly batch: {
    readonly scheduledDelayMillis?: number
    readonly maxQueueSize?: number
    readonly maxExportBatchSize?: number
    readonly exportTimeoutMillis?: number
  }
}

/** Samplers of the specification that depend only on the trace. */
export type SamplerName =
  | 'always_on'
  | 'always_off'
  | 'traceidratio'
  | 'parentbased_always_on'
  | 'parentbased_always_off'
  | 'parentbased_traceidratio'
