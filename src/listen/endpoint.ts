import type { Readable } from 'node:stream'
import type { ClientRequest, ClientResponse, EndpointResponse } from '../core/index.ts'

/** Responses without content, which have no length (RFC 9110 §8.6). */
const WITHOUT_CONTENT: ReadonlySet<number> = new Set([204, 304])

/**
 * Returns the response to a request; undefined closes the connection. `gone` is aborted when the client disconnects
 * or has its response.
 */
export type Endpoint = (
  request: ClientRequest,
  gone: AbortSignal,
) => EndpointResponse | undefined | Promise<EndpointResponse | undefined>

/** Request handler of a listener with endpoints of the program only. `onError` receives what `endpoint` throws. */
export function serveEndpoint(
  endpoint: Endpoint,
  onError: (error: unknown) => void,
): (request: ClientRequest, response: ClientResponse) => void {
  return (request, response) => {
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    if (request.expectsContinue) response.writeContinue()
    const answer = async (): Promise<void> => {
      const content = await endpoint(request, gone.signal)
      if (content === undefined) response.destroy()
      else respond(request, response, content)
    }
    answer().catch((error: unknown) => {
      onError(error)
      response.destroy()
    })
  }
}

/** Sends a response. `headers` (flat) are defaults. Returns all sent headers. */
export function respond(
  { method, complete }: ClientRequest,
  response: ClientResponse,
  { status, headers: own, body }: EndpointResponse,
  headers: readonly string[] = [],
): readonly string[] {
  const flat: string[] = []
  for (let index = 0; index + 1 < headers.length; index += 2) {
    const name = headers[index] ?? ''
    if (own[name] === undefined) flat.push(name, headers[index + 1] ?? '')
  }
  for (const [name, value] of Object.entries(own))
    for (const one of typeof value === 'string' ? [value] : value) flat.push(name, one)
  const isWhole = typeof body === 'string' || Buffer.isBuffer(body)
  if (isWhole && !WITHOUT_CONTENT.has(status)) flat.push('content-length', String(Buffer.byteLength(body)))
  // Otherwise the rest of the request body would have to be read.
  if (!complete && own['connection'] === undefined) flat.push('connection', 'close')
  if (response.destroyed) {
    if (!isWhole) body.destroy()
    return flat
  }
  response.writeHead(status, flat)
  if (!isWhole) stream(body, response, method === 'HEAD')
  else if (method === 'HEAD' || body.length === 0) response.end()
  else response.end(body)
  return flat
}

/** Streams at the speed of the client; an error on either side ends the other. */
function stream(body: Readable, response: ClientResponse, isHead: boolean): void {
  response.once('close', () => body.destroy())
  body.on('error', () => response.destroy())
  if (isHead) {
    response.end()
    return
  }
  response.flushHeaders()
  body.once('end', () => response.end())
  body.once('close', () => {
    if (!body.readableEnded) response.destroy()
  })
  response.on('drain', () => body.resume())
  body.on('data', (chunk: Buffer | string) => {
    if (!response.write(chunk)) body.pause()
  })
}
