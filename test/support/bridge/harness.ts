import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PassThrough } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, vi } from 'vitest'
import { Bridge, createSseEndpoint, Output } from '../../../src/bridge/index.ts'
import { noCredentials } from '../../../src/compose/token-file.ts'
import type { EndpointCredentials } from '../../../src/core/index.ts'
import { createMcpEndpoint } from '../../../src/net/index.ts'
import { recordLog } from '../e2e/lab.ts'

/** A request at a server that a test writes itself. */
export interface Arrived {
  readonly method: string
  /** Path and query. */
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: { id?: number | string; method?: string; params?: Record<string, unknown>; result?: unknown }
  readonly response: ServerResponse
  /** The client ended the request before it had its answer. */
  isAborted: boolean
  readonly json: (status: number, body: unknown, headers?: Record<string, string>) => void
  /** Opens an event stream; the function sends an event with these lines. */
  readonly events: (headers?: Record<string, string>) => (...lines: string[]) => void
}

/** An MCP server made of a function. */
export async function startServer(answer: (arrived: Arrived) => void) {
  const all: Arrived[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString()
      const arrived: Arrived = {
        method: request.method ?? '',
        path: request.url ?? '',
        headers: request.headers,
        body: text === '' ? {} : (JSON.parse(text) as Arrived['body']),
        response,
        isAborted: false,
        json: (status, body, headers = {}) =>
          void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body)),
        events(headers = {}) {
          response.writeHead(200, { 'content-type': 'text/event-stream', ...headers }).flushHeaders()
          return (...lines) => void response.write(`${lines.join('\n')}\n\n`)
        },
      }
      response.on('close', () => (arrived.isAborted = !response.writableFinished))
      all.push(arrived)
      answer(arrived)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    all,
    /** Bodies of what was asked by this JSON-RPC method, or HTTP method. */
    by: (method: string) => all.filter((one) => one.body.method === method || one.method === method),
    close() {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(resolve))
    },
  }
}

export type TestServer = Awaited<ReturnType<typeof startServer>>

interface Reply {
  readonly id?: number | string | null
  readonly method?: string
  readonly params?: Record<string, unknown>
  readonly result?: Record<string, unknown>
  readonly error?: { readonly code: number; readonly message: string; readonly data?: Record<string, unknown> }
}

/** A bridge to `url` in this process, and the client's side of it. */
export function openBridge(
  url: string,
  options: {
    credentials?: EndpointCredentials
    maxMessageBytes?: number
    naturalPauses?: boolean
    /** Acts as the user in front of the browser. */
    openBrowser?: (url: string) => void
  } = {},
) {
  const input = new PassThrough()
  const stdout = new PassThrough()
  const log = recordLog()
  const maxMessageBytes = options.maxMessageBytes ?? 1024 * 1024
  const endpoint = createSseEndpoint(createMcpEndpoint({ url: new URL(url) }), new URL(url), maxMessageBytes)
  const bridge = new Bridge({
    endpoint,
    credentials: options.credentials ?? noCredentials(),
    input,
    output: new Output(stdout),
    log,
    server: 'under test',
    opener: options.openBrowser && { origin: new URL(url), open: options.openBrowser },
    // Waits are as short as they can be while their order stays.
    pause: (ms, signal) => delay(options.naturalPauses === true ? ms : Math.min(ms / 20, 100), undefined, { signal }),
    maxMessageBytes,
  })
  const lines: string[] = []
  let rest = ''
  const read = (): void => {
    stdout.on('data', (chunk: Buffer) => {
      const parts = (rest + chunk.toString('latin1')).split('\n')
      rest = parts.pop() ?? ''
      lines.push(...parts.map((part) => Buffer.from(part, 'latin1').toString('utf8')))
    })
  }
  const running = bridge.run()
  const replies = (): Reply[] => lines.map((line) => JSON.parse(line) as Reply)
  return {
    log,
    lines,
    stdout,
    read,
    replies,
    send: (...messages: (object | string)[]) => {
      for (const one of messages)
        input.write(`${typeof one === 'string' ? one : JSON.stringify({ jsonrpc: '2.0', ...one })}\n`)
    },
    /** The answer to the request with this id, once it is there. */
    answer: (id: number | string | null): Promise<Reply> =>
      vi.waitFor(
        () => {
          const found = replies().find((reply) => reply.id === id && reply.method === undefined)
          expect(found).toBeDefined()
          return found ?? {}
        },
        { timeout: 15_000, interval: 5 },
      ),
    async close(graceMs = 0) {
      input.end()
      await running
      await bridge.close(graceMs)
      await endpoint.close()
    },
  }
}

export type TestBridge = ReturnType<typeof openBridge>

export const INITIALIZE = {
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
}

export const initialized = (id: unknown, version = '2025-11-25') => ({
  jsonrpc: '2.0',
  id,
  result: { protocolVersion: version, capabilities: {}, serverInfo: { name: 'test', version: '1' } },
})

/** Answers the handshake as a server with sessions does; false for anything else. */
export function shakeHands(arrived: Arrived, session: string): boolean {
  const { body, method } = arrived
  if (body.method === 'initialize') arrived.json(200, initialized(body.id), { 'mcp-session-id': session })
  else if (body.method === 'notifications/initialized') arrived.response.writeHead(202).end()
  else if (method === 'GET') arrived.response.writeHead(405).end()
  else if (method === 'DELETE') arrived.response.writeHead(204).end()
  else return false
  return true
}

export const result = (id: unknown, value: object = {}) => ({ jsonrpc: '2.0', id, result: value })
