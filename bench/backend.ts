import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * The backend of all measurements: `POST` answers with as many bytes of JSON as it got, `GET /…/idle` opens an event
 * stream that stays silent after its first event, `GET /…/events` sends one every 100 ms, `GET /…/endless` answers as long as
 * somebody reads, and a POST to `/…/list` with a list of 5,000 tools. Each event has the time at which it was written, on the clock that all processes of the machine share.
 */
const ENDLESS = Buffer.alloc(64 * 1024, 'x')
/** Of about 1 KiB each, as tools with a schema and a description are. */
const LIST = Buffer.from(
  JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    result: {
      tools: Array.from({ length: 5000 }, (_, index) => ({
        name: `${index % 2 === 0 ? 'get' : 'set'}_${index}`,
        description: 'x'.repeat(700),
        inputSchema: { type: 'object', properties: { text: { type: 'string', description: 'y'.repeat(150) } } },
      })),
    },
  }),
)
const streams = new Set<ServerResponse>()
const bodies = new Map<number, Buffer>()
const now = (): string => String(process.hrtime.bigint())

const bodyOf = (size: number): Buffer => {
  let body = bodies.get(size)
  if (body === undefined) bodies.set(size, (body = Buffer.from(JSON.stringify('x'.repeat(Math.max(0, size - 2))))))
  return size === 0 ? Buffer.alloc(0) : body
}

const server = createServer((request, response) => {
  if (request.url?.endsWith('/endless') === true) {
    response.writeHead(200, { 'content-type': 'application/json' })
    const more = (): void => {
      while (!response.destroyed && response.write(ENDLESS));
    }
    response.on('drain', more)
    more()
    return
  }
  if (request.method === 'GET') {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
    response.write(`data: ${now()}\n\n`)
    if (request.url?.includes('events') === true) {
      streams.add(response)
      response.on('close', () => streams.delete(response))
    }
    return
  }
  if (request.url?.endsWith('/list') === true) {
    request.resume().on('end', () => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': LIST.length })
      response.end(LIST)
    })
    return
  }
  let size = 0
  request.on('data', (chunk: Buffer) => (size += chunk.length))
  request.on('end', () => {
    const body = bodyOf(size)
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
    response.end(body)
  })
})
server.keepAliveTimeout = 60_000
setInterval(() => {
  for (const stream of streams) stream.write(`data: ${now()}\n\n`)
}, 100)
server.listen(0, '127.0.0.1', 4096, () => process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
process.on('disconnect', () => process.exit())
