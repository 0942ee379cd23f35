import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { JsonTraceSerializer, ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer'
import { ParentBasedSampler, type SpanExporter, TraceIdRatioBasedSampler } from '@opentelemetry/sdk-trace'
import { asFailure, type Log, type Outbound, OutboundError, type SecretHandle } from '../core/index.ts'
import { openTracer, type SpanTarget } from './tracer.ts'

/** A receiver configured by a document. */
export interface ReceiverOptions {
  /** Name in the log. */
  readonly name: string
  /** URL of the export. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly secretHeaders: readonly { readonly name: string; readonly value: SecretHandle }[]
  /** Share of sampled traces that start here, 0 to 1. */
  readonly samplingRate: number
  /** Attributes of the resource, including `service.name`. */
  readonly attributes: Readonly<Record<string, string>>
  readonly outbound: Outbound
  readonly log: Log
  /** Version of this product. */
  readonly version: string
}

/** Opens a receiver; sends nothing before there are spans. */
export const openReceiver = (options: ReceiverOptions): SpanTarget =>
  openTracer({
    attributes: options.attributes,
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(options.samplingRate) }),
    exporter: exporterTo({
      ...options,
      headers: () => headersOfExport(options),
      renew: async () => (await Promise.all(options.secretHeaders.map(({ value }) => value.refresh()))).includes(true),
      isJson: false,
      isCompressed: false,
    }),
    batch: {},
    version: options.version,
  })

/** Current headers of an export. Throws `Failure` secret_unavailable. */
export const headersOfExport = ({
  headers,
  secretHeaders,
}: Pick<ReceiverOptions, 'headers' | 'secretHeaders'>): Record<string, string> => ({
  ...headers,
  ...Object.fromEntries(secretHeaders.map(({ name, value }) => [name, value.current().reveal()])),
  'content-type': 'application/x-protobuf',
})

const REFUSED: ReadonlySet<number> = new Set([401, 403])

/** Export settings of one receiver. */
interface ExportOptions extends Pick<ReceiverOptions, 'name' | 'url' | 'outbound' | 'log'> {
  /** Current headers of an export, with content type and secrets. Throws `Failure` secret_unavailable. */
  readonly headers: () => Record<string, string>
  /** Reads the secrets again after a rejection; true if one has changed. */
  readonly renew: () => Promise<boolean>
  readonly isJson: boolean
  readonly isCompressed: boolean
}

const compress = promisify(gzip)

/** Exports OTLP over HTTP with the product's client: its egress proxy, certificates, deadline and retry apply. */
export function exporterTo(options: ExportOptions): SpanExporter {
  const { name, url, outbound, log, isJson, isCompressed } = options
  const serializer = isJson ? JsonTraceSerializer : ProtobufTraceSerializer
  const encoding = isCompressed ? { 'content-encoding': 'gzip' } : {}
  let isLogged = false
  const post = async (spans: Uint8Array) => {
    const body = isCompressed ? await compress(spans) : spans
    return outbound.request({ method: 'POST', url, headers: { ...options.headers(), ...encoding }, body })
  }
  /** Undefined if accepted, else the reason. */
  const send = async (body: Uint8Array): Promise<string | undefined> => {
    try {
      let { status } = await post(body)
      if (REFUSED.has(status)) {
        if (await options.renew()) ({ status } = await post(body))
      }
      return status >= 200 && status < 300 ? undefined : `status ${status}`
    } catch (error) {
      return error instanceof OutboundError ? error.kind : asFailure(error).code
    }
  }
  const exportOne = async (body: Uint8Array, done: Parameters<SpanExporter['export']>[1]): Promise<void> => {
    const reason = await send(body)
    // An unavailable receiver loses spans, and is logged once until it recovers.
    if (reason !== undefined && !isLogged) log.warn({ receiver: name, reason }, 'traces dropped, receiver unavailable')
    if (reason === undefined && isLogged) log.info({ receiver: name }, 'trace receiver available again')
    isLogged = reason !== undefined
    done({ code: reason === undefined ? 0 : 1 })
  }
  return {
    export(spans, done) {
      const body = serializer.serializeRequest(spans)
      if (body === undefined) return done({ code: 1 })
      void exportOne(body, done)
    },
    shutdown: () => outbound.close(),
    forceFlush: () => Promise.resolve(),
  }
}
