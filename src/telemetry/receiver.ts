import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { JsonTraceSerializer, ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer'
import { ParentBasedSampler, type SpanExporter, TraceIdRatioBasedSampler } from '@opentelemetry/sdk-trace'
import { asFailure, type Log, type Outbound, OutboundError, type SecretHandle } from '../core/index.ts'
import { openTracer, type SpanTarget } from './tracer.ts'

/** A receiver that a document names, and how it is reached. */
export interface ReceiverOptions {
  /** What is called, in the log. */
  readonly name: string
  /** Where spans are posted. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly secretHeaders: readonly { readonly name: string; readonly value: SecretHandle }[]
  /** Share of the traces that begin here, 0 to 1. */
  readonly samplingRate: number
  /** Attributes of the resource, `service.name` among them. */
  readonly attributes: Readonly<Record<string, string>>
  readonly outbound: Outbound
  readonly log: Log
  /** Of this product. */
  readonly version: string
}

/** Opens the way to it; nothing is sent before there are spans. */
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

/** The headers of an export as they are now. Throws `Failure` secret_unavailable. */
export const headersOfExport = ({
  headers,
  secretHeaders,
}: Pick<ReceiverOptions, 'headers' | 'secretHeaders'>): Record<string, string> => ({
  ...headers,
  ...Object.fromEntries(secretHeaders.map(({ name, value }) => [name, value.current().reveal()])),
  'content-type': 'application/x-protobuf',
})

const REFUSED: ReadonlySet<number> = new Set([401, 403])

/** How one receiver takes its exports. */
interface ExportOptions extends Pick<ReceiverOptions, 'name' | 'url' | 'outbound' | 'log'> {
  /** The headers of an export, its content type included, with secrets as they are now. Throws `Failure` secret_unavailable. */
  readonly headers: () => Record<string, string>
  /** Reads the secrets again after a refusal; true if one has changed. */
  readonly renew: () => Promise<boolean>
  readonly isJson: boolean
  readonly isCompressed: boolean
}

const compress = promisify(gzip)

/** OTLP over HTTP, through the product's own client: egress proxy, certificates, deadline and retry are those of all its calls. */
export function exporterTo(options: ExportOptions): SpanExporter {
  const { name, url, outbound, log, isJson, isCompressed } = options
  const serializer = isJson ? JsonTraceSerializer : ProtobufTraceSerializer
  const encoding = isCompressed ? { 'content-encoding': 'gzip' } : {}
  let isTold = false
  const post = async (spans: Uint8Array) => {
    const body = isCompressed ? await compress(spans) : spans
    return outbound.request({ method: 'POST', url, headers: { ...options.headers(), ...encoding }, body })
  }
  /** Undefined when it was taken; else why not. */
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
    // A receiver that is away costs spans, and is told once until it is back.
    if (reason !== undefined && !isTold)
      log.warn({ receiver: name, reason }, 'traces are lost: the receiver does not take them')
    if (reason === undefined && isTold) log.info({ receiver: name }, 'the receiver takes traces again')
    isTold = reason !== undefined
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
