import { readFileSync } from 'node:fs'
import { Agent, createServer, request as httpsRequest, type Server } from 'node:https'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { TLS } from '../../support/tls.ts'

/** A request as the API server's audit log would name it. */
export interface Seen {
  readonly atMs: number
  readonly verb: 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete'
  /** Plural, with the subresource: `leases`, `mcpexternalauthconfigs/status`. */
  readonly resource: string
  readonly name: string
  readonly query: URLSearchParams
  readonly token: string
  /** Of the answer; undefined while there is none. */
  status?: number
  answeredMs?: number
}

/** A fault applied to a request instead of forwarding it. */
export type Fault =
  | {
      readonly do: 'answer'
      readonly status: number
      readonly headers?: Readonly<Record<string, string>>
      readonly body?: string
    }
  /** RST. */
  | { readonly do: 'reset' }
  /** The request is taken and nothing ever comes. */
  | { readonly do: 'swallow' }
  /** A watch that is taken and says this, and then ends, is cut, or goes on with what the API server says. */
  | { readonly do: 'say'; readonly text: string | Buffer; readonly ending: 'reset' | 'end' | 'go on' }
  /** The API server's answer, changed. */
  | { readonly do: 'change'; readonly change: (body: string) => string }

export interface FaultProxy {
  readonly url: string
  readonly requests: readonly Seen[]
  /** Asked for every request; undefined passes it on. */
  fault: (request: Seen) => Fault | undefined
  /** Resets all connections. */
  resetAll(): void
  /** Half-open: running watches say nothing more, and no end; those of `dripping` a blank each second. */
  muteWatches(dripping: string): void
  close(): Promise<void>
}

interface Flow {
  readonly seen: Seen
  readonly response: ServerResponse
  readonly answer: IncomingMessage
}

const VERBS = { POST: 'create', PUT: 'update', PATCH: 'patch', DELETE: 'delete' } as const

function describe(request: IncomingMessage): Seen {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'https://api')
  const parts = pathname.split('/').slice(1)
  const rest = parts.slice(parts[0] === 'api' ? 2 : 3)
  const [plural = '', name = '', subresource] = rest[0] === 'namespaces' && rest.length > 2 ? rest.slice(2) : rest
  const reading = searchParams.has('watch') ? 'watch' : name === '' ? 'list' : 'get'
  return {
    atMs: performance.now(),
    verb: VERBS[request.method as keyof typeof VERBS] ?? reading,
    resource: subresource === undefined ? plural : `${plural}/${subresource}`,
    name,
    query: searchParams,
    token: (request.headers.authorization ?? '').slice('Bearer '.length),
  }
}

/** A proxy between an operator and the API server, with its own certificate and faults on demand. */
export async function startFaultProxy(target: {
  readonly server: string
  readonly caPath: string
}): Promise<FaultProxy> {
  const agent = new Agent({ keepAlive: true, ca: readFileSync(target.caPath) })
  const sockets = new Set<Socket>()
  const flows = new Set<Flow>()
  const drips = new Set<NodeJS.Timeout>()
  const requests: Seen[] = []

  const resetAll = (): void => {
    for (const socket of sockets) socket.resetAndDestroy()
  }
  const answered = (seen: Seen, status: number): void => {
    seen.status = status
    seen.answeredMs = performance.now()
  }

  const forward = (
    seen: Seen,
    request: IncomingMessage,
    response: ServerResponse,
    raw: Socket,
    fault?: Fault,
  ): void => {
    const { method, url, headers } = request
    const onward = httpsRequest(`${target.server}${url ?? ''}`, { method, headers, agent }, (answer) => {
      answered(seen, answer.statusCode ?? 0)
      if (fault?.do === 'change') {
        void changed(fault.change, answer, response)
        return
      }
      if (!response.headersSent) response.writeHead(answer.statusCode ?? 502, answer.headers).flushHeaders()
      const flow = { seen, response, answer }
      flows.add(flow)
      // A flow that was muted is none any more.
      answer.on('data', (chunk: Buffer) => {
        if (flows.has(flow)) response.write(chunk)
      })
      answer.on('end', () => {
        if (flows.delete(flow)) response.end()
      })
      answer.on('error', () => {
        if (flows.delete(flow)) raw.resetAndDestroy()
      })
      response.on('close', () => {
        flows.delete(flow)
        onward.destroy()
      })
    })
    onward.on('error', () => {
      if (!response.headersSent) raw.resetAndDestroy()
    })
    request.pipe(onward)
  }

  const proxy = {
    fault: (_request: Seen): Fault | undefined => undefined,
  }
  const handle = (request: IncomingMessage, response: ServerResponse, raw: Socket): void => {
    const seen = describe(request)
    requests.push(seen)
    const fault = proxy.fault(seen)
    switch (fault?.do) {
      case 'answer':
        request.resume()
        answered(seen, fault.status)
        response.writeHead(fault.status, { 'content-type': 'application/json', ...fault.headers }).end(fault.body)
        return
      case 'reset':
        raw.resetAndDestroy()
        return
      case 'swallow':
        return
      case 'say':
        answered(seen, 200)
        response.writeHead(200, { 'content-type': 'application/json' })
        response.write(fault.text, () => {
          if (fault.ending === 'reset') raw.resetAndDestroy()
          if (fault.ending === 'end') response.end()
        })
        if (fault.ending === 'go on') forward(seen, request, response, raw)
        return
      default:
        forward(seen, request, response, raw, fault)
    }
  }

  /** The TCP connection below a TLS one, by its peer's port: only that can be reset. */
  const rawSockets = new Map<number | undefined, Socket>()
  const server: Server = createServer({ ...TLS.server }, (request, response) => {
    const raw = rawSockets.get(request.socket.remotePort)
    if (raw === undefined) response.destroy()
    else handle(request, response, raw)
  })
  server.on('connection', (socket: Socket) => {
    const { remotePort } = socket
    sockets.add(socket)
    rawSockets.set(remotePort, socket)
    socket.on('error', () => {})
    socket.once('close', () => {
      sockets.delete(socket)
      if (rawSockets.get(remotePort) === socket) rawSockets.delete(remotePort)
    })
  })
  server.on('tlsClientError', () => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return Object.assign(proxy, {
    url: `https://127.0.0.1:${port}`,
    requests,
    resetAll,
    muteWatches(dripping: string) {
      for (const flow of flows) {
        const { seen, response } = flow
        if (seen.verb !== 'watch') continue
        flows.delete(flow)
        if (seen.resource === dripping) drips.add(setInterval(() => response.write(' '), 1_000))
      }
    },
    async close() {
      for (const drip of drips) clearInterval(drip)
      const closed = new Promise((resolve) => server.close(resolve))
      resetAll()
      await closed
      agent.destroy()
    },
  })
}

async function changed(
  change: (body: string) => string,
  answer: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const parts: Buffer[] = []
  for await (const part of answer) parts.push(part as Buffer)
  response.writeHead(answer.statusCode ?? 502, { 'content-type': 'application/json' })
  response.end(change(Buffer.concat(parts).toString('utf8')))
}
