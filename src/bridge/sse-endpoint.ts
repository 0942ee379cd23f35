import { PassThrough } from 'node:stream'
import type { EndpointAnswer, EndpointRequest, McpEndpoint } from '../core/index.ts'
import { parseMessages } from '../mcp/index.ts'
import { discardRest, isStream } from './answers.ts'
import { SseStream } from './sse-stream.ts'

/**
 * Statuses by which servers of the old transport reject a POST to the stream's URL (MCP 2025-03-26, backwards
 * compatibility).
 */
const NOT_HERE: ReadonlySet<number> = new Set([400, 404, 405])
/** Time for a server to send the message URL, in milliseconds. */
const ADDRESS_MS = 10_000

/**
 * The endpoint at `url`. Adapts a server of the old transport (2024-11-05, HTTP with SSE) to streamable HTTP: its
 * stream is the session, and its messages are responses to requests. The first rejected `initialize` decides on the
 * transport. `maxBytes` limits one message.
 */
export function createSseEndpoint(inner: McpEndpoint, url: URL, maxBytes: number): McpEndpoint {
  let stream: SseStream | undefined
  let isOld = false
  let opened = 0

  /** Opens the stream of a new session, or returns the rejection, which a new token may resolve. */
  const open = async (request: EndpointRequest): Promise<SseStream | EndpointAnswer> => {
    const end = new AbortController()
    const stop = (): void => end.abort(request.signal.reason)
    request.signal.addEventListener('abort', stop, { once: true })
    const late = setTimeout(() => end.abort(new Error('no message URL in time')), ADDRESS_MS)
    try {
      const headers = { ...toOld(request.headers), accept: 'text/event-stream' }
      const answer = await inner.send({ method: 'GET', headers, signal: end.signal })
      if (answer.status !== 200 || !isStream(answer)) return answer
      const next = new SseStream(`sse-${++opened}`, answer.body, end, maxBytes)
      return (await next.find(url)) ? next : answerOf(405)
    } finally {
      clearTimeout(late)
      // The stream outlives the request that opened it.
      request.signal.removeEventListener('abort', stop)
    }
  }

  /** Posts a message to the URL of the stream; the response arrives on the stream. */
  const post = async (request: EndpointRequest, to: SseStream): Promise<EndpointAnswer> => {
    const [message] = parseMessages(Buffer.from(request.body ?? []))
    const body = message?.kind === 'request' ? to.wait(message.id) : undefined
    let taken: EndpointAnswer
    try {
      taken = await inner.send({ ...request, headers: toOld(request.headers), path: to.address })
    } catch (error) {
      body?.destroy()
      throw error
    }
    if (taken.status < 300) {
      discardRest(taken.body)
      return body === undefined ? answerOf(202) : streamed(body, to, request.signal)
    }
    body?.destroy()
    return taken
  }

  const begin = async (request: EndpointRequest): Promise<EndpointAnswer> => {
    stream?.end()
    stream = undefined
    const found = await open(request)
    if (!(found instanceof SseStream)) return found
    stream = found
    isOld = true
    return post(request, found)
  }

  const toStream = (request: EndpointRequest): EndpointAnswer | Promise<EndpointAnswer> => {
    // Equals the response of a server with a lost session: the bridge starts a new one.
    if (stream === undefined || stream.isOver || request.headers['mcp-session-id'] !== stream.id) return answerOf(404)
    if (request.method === 'POST') return post(request, stream)
    if (request.method === 'GET') return streamed(stream.listen(), stream, request.signal)
    stream.end()
    return answerOf(204)
  }

  return {
    async send(request) {
      const isHandshake = request.method === 'POST' && isInitialize(request)
      if (isOld) return isHandshake ? begin(request) : toStream(request)
      const answer = await inner.send(request)
      if (!isHandshake || !NOT_HERE.has(answer.status)) return answer
      const other = await begin(request)
      const isOther = isOld || other.status === 401 || other.status === 403
      discardRest(isOther ? answer.body : other.body)
      return isOther ? other : answer
    },
    async close() {
      stream?.end()
      await inner.close()
    },
  }
}

function isInitialize({ body }: EndpointRequest): boolean {
  const [message] = parseMessages(Buffer.from(body ?? []))
  return message?.kind === 'request' && message.method === 'initialize'
}

/** Removes headers that the old transport lacks. */
const toOld = (headers: EndpointRequest['headers']): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !/^(?:mcp-|last-event-id)/.test(name)))

const answerOf = (status: number): EndpointAnswer => {
  const body = new PassThrough()
  body.end()
  return { status, headers: {}, body }
}

/** Messages on the session's stream, as the stream of one response. */
function streamed(body: PassThrough, { id }: SseStream, signal: AbortSignal): EndpointAnswer {
  const stop = (): void => void body.destroy()
  signal.addEventListener('abort', stop, { once: true })
  body.once('close', () => signal.removeEventListener('abort', stop))
  return { status: 200, headers: { 'content-type': 'text/event-stream', 'mcp-session-id': id }, body }
}
