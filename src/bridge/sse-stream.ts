import { PassThrough, type Readable } from 'node:stream'
import { EventReader, type Id, keyOf, parseMessages, type ServerEvent } from '../mcp/index.ts'

const MAX_ADDRESS = 4096

/** The stream of a session of the old transport (MCP 2024-11-05): the message URL, then messages of the server. */
export class SseStream {
  /** Replaces `Mcp-Session-Id`, which the old transport lacks. */
  readonly id: string
  /** Path and query for client messages; empty before `find`. */
  address = ''
  isOver = false
  readonly #end: AbortController
  readonly #waiting = new Map<string, PassThrough>()
  readonly #named = Promise.withResolvers<string | undefined>()
  #listener: PassThrough | undefined

  /** Reads until the stream ends or `end` is aborted. */
  constructor(id: string, body: Readable, end: AbortController, maxBytes: number) {
    this.id = id
    this.#end = end
    void this.#read(body, maxBytes)
  }

  /** Waits for the URL. False if it has a different origin, or does not arrive. */
  async find(server: URL): Promise<boolean> {
    const named = await this.#named.promise
    const url = named === undefined || named.length > MAX_ADDRESS ? null : URL.parse(named, server.href)
    // The URL receives tokens, so it must be on the same server (MCP 2024-11-05 does not say).
    if (url === null || url.origin !== server.origin) {
      this.end()
      return false
    }
    this.address = url.pathname + url.search
    return true
  }

  /** Stream of the messages for a request, until its response. */
  wait(id: Id): PassThrough {
    const key = keyOf(id)
    const body = new PassThrough()
    this.#waiting.set(key, body)
    body.once('close', () => {
      if (this.#waiting.get(key) === body) this.#waiting.delete(key)
    })
    return body
  }

  /** Stream of the messages without a request. */
  listen(): PassThrough {
    this.#listener?.end()
    this.#listener = new PassThrough()
    return this.#listener
  }

  end(): void {
    this.#end.abort(new Error('session ended'))
  }

  async #read(body: Readable, maxBytes: number): Promise<void> {
    const events = new EventReader(maxBytes)
    try {
      for await (const chunk of body as AsyncIterable<Buffer>)
        for (const event of events.push(chunk)) await this.#take(event)
    } catch {
      // Waiting requests see the end of the stream.
    }
    this.isOver = true
    this.#named.resolve(undefined)
    body.destroy()
    for (const waiting of this.#waiting.values()) waiting.end()
    this.#listener?.end()
  }

  /**
   * Routes a response to its request, other messages to a running request (which keeps their order), else to the
   * listener.
   */
  async #take({ type, data }: ServerEvent): Promise<void> {
    if (type === 'endpoint') return this.#named.resolve(new TextDecoder().decode(data))
    if (type !== 'message') return
    for (const message of parseMessages(data)) {
      const isAnswer = message.kind === 'response' && message.id !== null
      const own = isAnswer ? this.#waiting.get(keyOf(message.id)) : undefined
      const to = isAnswer ? own : (this.#waiting.values().next().value ?? this.#listener)
      if (to === undefined || to.destroyed || message.kind === 'malformed') continue
      const isWritable = to.write(`data: ${message.bytes.toString('utf8')}\n\n`)
      if (own !== undefined) own.end()
      else if (!isWritable) await new Promise((resolve) => to.once('drain', resolve).once('close', resolve))
    }
  }
}
