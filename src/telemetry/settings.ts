/** What the standard variables of OpenTelemetry say about traces; what is not here the exporter reads by itself. */
export interface TraceSettings {
  readonly protocol: 'http/protobuf' | 'http/json'
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
