import type { Secret } from '../core/index.ts'

/** The standard variables of OpenTelemetry for traces, validated (OTLP exporter and SDK specifications). */
export interface TraceSettings {
  /** Where spans are posted. */
  readonly url: string
  readonly protocol: 'http/protobuf' | 'http/json'
  /** Header values are credentials as a rule. */
  readonly headers: Readonly<Record<string, Secret>>
  /** Milliseconds of one export. Default 10,000. */
  readonly timeoutMs: number
  readonly isCompressed: boolean
  /** CA certificates that replace the system roots, and the certificate and key for TLS client authentication: PEM files. */
  readonly files: { readonly ca?: string; readonly client?: { readonly certificate: string; readonly key: string } }
  readonly sampler: SamplerName
  /** Share of the traces that begin here, 0 to 1; for the samplers by ratio. */
  readonly ratio: number
  /** Milliseconds between exports, spans in the queue, spans in an export, milliseconds of an export. */
  readonly batch: {
    readonly scheduledDelayMillis?: number
    readonly maxQueueSize?: number
    readonly maxExportBatchSize?: number
    readonly exportTimeoutMillis?: number
  }
}

/** Samplers of the specification that need nothing but the trace itself. */
export type SamplerName =
  | 'always_on'
  | 'always_off'
  | 'traceidratio'
  | 'parentbased_always_on'
  | 'parentbased_always_off'
  | 'parentbased_traceidratio'
