import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { openBridge } from './harness.ts'

interface Message {
  readonly id?: string | number
  readonly method?: string
  readonly params?: { readonly _meta?: Readonly<Record<string, unknown>> }
}

/** A client of a bridge: its requests by id, and a listener for other messages. */
class Client {
  readonly #bridge: ReturnType<typeof openBridge>
  readonly #waiting = new Map<string, ServerResponse>()
  listener: ServerResponse | undefined

  constructor(url: string) {
    this.#bridge = openBridge(url, { maxMessageBytes: 64 * 1024 * 1024, naturalPauses: true })
    let rest = ''
    this.#bridge.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      const lines = (rest + chunk).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) this.#hear(line)
    })
  }

  /** A request, whose answer and what comes before it go into `response`; anything else is only passed on. */
  say(text: string, { id, method }: Message, response: ServerResponse): void {
    if (id === undefined || method === undefined) {
      this.#bridge.send(text)
      response.writeHead(202).end()
      return
    }
    response.writeHead(200, { 'content-type': 'text/event-stream', ...this.#session() }).flushHeaders()
    this.#waiting.set(JSON.stringify(id), response)
    response.on('close', () => {
      if (!this.#waiting.delete(JSON.stringify(id))) return
      this.#bridge.send({ method: 'notifications/cancelled', params: { requestId: id } })
    })
    this.#bridge.send(text)
  }

  id: string | undefined
  close = (): Promise<void> => this.#bridge.close()

  #session(): Record<string, string> {
    return this.id === undefined ? {} : { 'mcp-session-id': this.id }
  }

  #hear(line: string): void {
    const { id, method } = JSON.parse(line) as Message
    const event = `event: message\ndata: ${line}\n\n`
    const key = JSON.stringify(id)
    const asked = method === undefined ? this.#waiting.get(key) : undefined
    if (asked !== undefined) {
      this.#waiting.delete(key)
      asked.end(event)
    } else ([...this.#waiting.values()].at(-1) ?? this.listener)?.write(event)
  }
}

/**
 * What speaks HTTP finds the client's side of a bridge here, as well as that can be: on standard output nothing says to
 * which request a message belongs, so it goes with the last one.
 */
export async function startFront(url: string) {
  const sessions = new Map<string, Client>()
  const all: Client[] = []
  const open = (): Client => {
    const client = new Client(url)
    all.push(client)
    return client
  }
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const text = Buffer.concat(chunks).toString()
    const known = sessions.get(String(request.headers['mcp-session-id'] ?? ''))
    if (request.method === 'DELETE') {
      await known?.close()
      response.writeHead(204).end()
    } else if (request.method === 'GET') {
      if (known === undefined) return void response.writeHead(405).end()
      known.listener = response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.flushHeaders()
    } else {
      const message = JSON.parse(text) as Message
      const client = known ?? open()
      if (message.method === 'initialize') sessions.set((client.id = randomUUID()), client)
      client.say(text, message, response)
    }
  }
  const server = createServer((request, response) => void serve(request, response).catch(() => response.destroy()))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    async close() {
      server.closeAllConnections()
      server.close()
      await Promise.all(all.map((client) => client.close().catch(() => undefined)))
    },
  }
}
