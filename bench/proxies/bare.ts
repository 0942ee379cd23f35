import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Dispatcher, Pool } from 'undici'

// The least that streams both ways, waits for slow readers and aborts: what any proxy on undici has to pay.
const HOP = new Set(['connection', 'keep-alive', 'transfer-encoding', 'upgrade', 'te', 'trailer', 'proxy-connection'])
const target = new URL(process.argv[2] ?? '')
const pool = new Pool(target.origin, { headersTimeout: 0, bodyTimeout: 0, allowH2: false })

class Handler implements Dispatcher.DispatchHandler {
  readonly #response: ServerResponse
  #controller: Dispatcher.DispatchController | undefined
  constructor(response: ServerResponse) {
    this.#response = response
    response.on('close', () => {
      if (!response.writableEnded) this.#controller?.abort(new Error('client gone'))
    })
  }
  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
  }
  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    const flat: string[] = []
    for (const name in headers) {
      const value = headers[name]
      if (value === undefined || HOP.has(name)) continue
      if (typeof value === 'string') flat.push(name, value)
      else for (const line of value) flat.push(name, line)
    }
    this.#response.writeHead(status, flat)
    if (headers['content-length'] === undefined) this.#response.flushHeaders()
  }
  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#response.write(chunk)) return
    controller.pause()
    this.#response.once('drain', () => controller.resume())
  }
  onResponseEnd(): void {
    this.#response.end()
  }
  onResponseError(): void {
    if (this.#response.headersSent) this.#response.destroy()
    else this.#response.writeHead(502).end()
  }
}

const server = createServer((request, response) => {
  const headers = ['host', target.host]
  for (let index = 0; index + 1 < request.rawHeaders.length; index += 2) {
    const name = request.rawHeaders[index] ?? ''
    const lower = name.toLowerCase()
    if (lower !== 'host' && !HOP.has(lower)) headers.push(name, request.rawHeaders[index + 1] ?? '')
  }
  const body = request.method === 'GET' ? null : request
  pool.dispatch({ path: request.url ?? '/', method: request.method ?? 'GET', headers, body }, new Handler(response))
})
// As long as extauth keeps them.
server.keepAliveTimeout = 75_000
server.listen(Number(process.argv[3] ?? 0), '127.0.0.1', 4096, () =>
  process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
)
process.on('disconnect', () => process.exit())
