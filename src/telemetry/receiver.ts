import { ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer'
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
    exporter: exporterTo(options),
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

/** OTLP over HTTP, protobuf: through the client that all of this product have, with secrets as they are at that moment. */
function exporterTo(options: ReceiverOptions): SpanExporter {
  const { name, url, outbound, secretHeaders, log } = options
  let isTold = false
  const post = (body: Uint8Array) => outbound.request({ method: 'POST', url, headers: headersOfExport(options), body })
  /** Undefined when it was taken; else why not. */
  const send = async (body: Uint8Array): Promise<string | undefined> => {
    try {
      let { status } = await post(body)
      if (REFUSED.has(status)) {
        const renewed = await Promise.all(secretHeaders.map(({ value }) => value.refresh()))
        if (renewed.includes(true)) ({ status } = await post(body))
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
      const body = ProtobufTraceSerializer.serializeRequest(spans)
      if (body === undefined) return done({ code: 1 })
      void exportOne(body, done)
    },
    shutdown: () => outbound.close(),
    forceFlush: () => Promise.resolve(),
  }
}
