import { PassThrough, type Readable } from 'node:stream'
import { EventReader, type Id, keyOf, parseMessages, type ServerEvent } from '../mcp/index.ts'

const MAX_ADDRESS = 4096

/** The one stream of a session of the old transport (MCP 2024-11-05): messages of the server, after the address for ours. */
export class SseStream {
  /** What stands for `Mcp-Session-Id`, which the old transport has not. */
  readonly id: string
  /** Path and query for messages of the client; empty before `find`. */
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

  /** Waits for the address; false for one of another origin than the server's, and where none comes. */
  async find(server: URL): Promise<boolean> {
    const named = await this.#named.promise
    const url = named === undefined || named.length > MAX_ADDRESS ? null : URL.parse(named, server.href)
    // Tokens go there: it must be the same server (MCP 2024-11-05 leaves it open).
    if (url === null || url.origin !== server.origin) {
      this.end()
      return false
    }
    this.address = url.pathname + url.search
    return true
  }

  /** What comes for a request until it is answered. */
  wait(id: Id): PassThrough {
    const key = keyOf(id)
    const body = new PassThrough()
    this.#waiting.set(key, body)
    body.once('close', () => {
      if (this.#waiting.get(key) === body) this.#waiting.delete(key)
    })
    return body
  }

  /** What comes when no request waits. */
  listen(): PassThrough {
    this.#listener?.end()
    this.#listener = new PassThrough()
    return this.#listener
  }

  end(): void {
    this.#end.abort(new Error('the session ends'))
  }

  async #read(body: Readable, maxBytes: number): Promise<void> {
    const events = new EventReader(maxBytes)
    try {
      for await (const chunk of body as AsyncIterable<Buffer>)
        for (const event of events.push(chunk)) await this.#take(event)
    } catch {
      // Whoever waits hears that the stream has ended.
    }
    this.isOver = true
    this.#named.resolve(undefined)
    body.destroy()
    for (const waiting of this.#waiting.values()) waiting.end()
    this.#listener?.end()
  }

  /** An answer belongs to its request; anything else to a request that runs, so that order is kept, or to who listens. */
  async #take({ type, data }: ServerEvent): Promise<void> {
    if (type === 'endpoint') return this.#named.resolve(new TextDecoder().decode(data))
    if (type !== 'message') return
    for (const message of parseMessages(data)) {
      const isAnswer = message.kind === 'response' && message.id !== null
      const own = isAnswer ? this.#waiting.get(keyOf(message.id)) : undefined
      const to = isAnswer ? own : (this.#waiting.values().next().value ?? this.#listener)
      if (to === undefined || to.destroyed || message.kind === 'malformed') continue
      const hasRoom = to.write(`data: ${message.bytes.toString('utf8')}\n\n`)
      if (own !== undefined) own.end()
      else if (!hasRoom) await new Promise((resolve) => to.once('drain', resolve).once('close', resolve))
    }
  }
}
