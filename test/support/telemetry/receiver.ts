import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'

interface Value {
  readonly stringValue?: string
  readonly intValue?: number | string
}
type Attributes = readonly { readonly key: string; readonly value: Value }[]

/** A span as OTLP's JSON has it, with its attributes as an object. */
export interface ReceivedSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string
  readonly name: string
  readonly kind: number
  readonly attributes: Readonly<Record<string, string | number>>
  readonly status: { readonly code?: number }
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[]
}

const objectOf = (attributes: Attributes): Record<string, string | number> =>
  Object.fromEntries(
    attributes.map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue ?? Number.NaN)]),
  )

export interface ReceiverSettings {
  /** Serves https. Default: plain http. */
  readonly tls?: { readonly cert: Buffer; readonly key: Buffer }
  /** The status of an answer. Default 200. */
  readonly statusOf?: (headers: IncomingHttpHeaders) => number
}

/** Takes what an exporter sends over OTLP/HTTP. */
export async function startReceiver({ tls, statusOf = () => 200 }: ReceiverSettings = {}) {
  const requests: { readonly path: string; readonly headers: IncomingHttpHeaders; readonly body: Buffer }[] = []
  const listener: RequestListener = (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      requests.push({ path: request.url ?? '', headers: request.headers, body: Buffer.concat(chunks) })
      response.writeHead(statusOf(request.headers), { 'content-type': 'application/json' }).end('{}')
    })
  }
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const resourceSpans = () =>
    requests
      .filter(({ headers }) => headers['content-type'] === 'application/json')
      .flatMap(
        ({ body }) =>
          (
            JSON.parse(body.toString('utf8')) as {
              resourceSpans: {
                resource: { attributes: Attributes }
                scopeSpans: { spans: (Omit<ReceivedSpan, 'attributes'> & { attributes: Attributes })[] }[]
              }[]
            }
          ).resourceSpans,
      )
  return {
    url: `${tls === undefined ? 'http://127.0.0.1' : 'https://localhost'}:${(server.address() as AddressInfo).port}`,
    requests,
    resource: () => objectOf(resourceSpans()[0]?.resource.attributes ?? []),
    spans: (): ReceivedSpan[] =>
      resourceSpans()
        .flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
        .flatMap(({ attributes, ...span }) => [{ ...span, attributes: objectOf(attributes) }]),
    close: () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
}
