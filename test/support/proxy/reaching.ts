import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { duplexPair } from 'node:stream'
import type { Sockets } from '../sockets.ts'
import { mutated } from '../wire/answers.ts'
import { Chance } from '../wire/random.ts'
import { requests } from '../wire/requests-to-read.ts'
import { createRoute, runtimeOf, startProxy } from './harness.ts'

export interface Reached {
  /** Requests that Node's strict parser takes for whole, and those of them that reached the backend. */
  readonly whole: number
  readonly reached: number
  /** Requests that reached the backend although Node rejects them; empty if there are none. */
  readonly differences: readonly string[]
}

const AT_ONCE = 50
const LIMIT_MS = 30_000

/**
 * Sends random connections, mutated and cut at random places, through the real proxy to a backend that records them: nothing
 * reaches it whole that Node's strict parser does not find in the same bytes, with the same method, target and body.
 */
export async function compareReaching(sockets: Sockets, seed: number, count: number): Promise<Reached> {
  const recorded: string[] = []
  const origin = await sockets.http(recording((request) => recorded.push(request)))
  const proxy = await startProxy(sockets, runtimeOf([createRoute(sockets, origin)]), { allowedHosts: ['h'] })
  const chance = new Chance(seed)
  const allowed = new Map<string, number>()
  let whole = 0
  for (let sent = 0; sent < count; sent += AT_ONCE) {
    const connections = Array.from({ length: Math.min(AT_ONCE, count - sent) }, () => {
      const bytes = mutated(chance, requests(chance))
      return { bytes, pieces: chance.cut(bytes) }
    })
    await Promise.all(connections.map(({ pieces }) => send(proxy.url, pieces)))
    for (const { bytes } of connections)
      for (const request of await wholeRequests(bytes)) {
        whole++
        allowed.set(request, (allowed.get(request) ?? 0) + 1)
      }
  }
  // Requests still in flight to the backend after the client left.
  await proxy.drain(LIMIT_MS)
  const differences = recorded.filter((request) => {
    const left = (allowed.get(request) ?? 0) - 1
    allowed.set(request, left)
    return left < 0
  })
  return { whole, reached: recorded.length, differences }
}

/** Reports each complete request. */
const recording =
  (tell: (request: string) => void): RequestListener =>
  (request, response) => {
    const body: Buffer[] = []
    request.on('data', (data: Buffer) => body.push(data))
    request.on('end', () => {
      if (request.complete) tell(nameOf(request, Buffer.concat(body)))
      response.end('{}')
    })
  }

/** Absolute-form names the same as origin-form behind the authority (RFC 9112 §3.2.2). */
const nameOf = ({ method, url = '' }: IncomingMessage, body: Buffer): string =>
  JSON.stringify([method, url.replace(/^https?:\/\/[^/]*/, ''), body.toString('latin1')])

/** Sends the pieces, a turn apart, and waits until the proxy has ended the connection. */
function send(url: string, pieces: readonly Buffer[]): Promise<void> {
  return new Promise((resolve) => {
    const { hostname, port } = new URL(url)
    const socket = connect({ host: hostname, port: Number(port), noDelay: true })
    const timer = setTimeout(() => socket.destroy(), LIMIT_MS)
    socket
      .on('error', () => undefined)
      .on('close', () => {
        clearTimeout(timer)
        resolve()
      })
    socket.resume()
    const left = [...pieces]
    const next = (): void => {
      const piece = left.shift()
      if (socket.destroyed) return
      if (piece === undefined) socket.end()
      else socket.write(piece, () => setImmediate(next))
    }
    next()
  })
}

const parser = createServer({ insecureHTTPParser: false, requireHostHeader: false, maxHeaderSize: 64 * 1024 })
parser.maxHeadersCount = 0
const found = new WeakMap<object, string[]>()
// The proxy rejects an unknown expectation; here it counts as one that may reach the backend.
for (const event of ['request', 'checkExpectation'])
  parser.on(event, (request: IncomingMessage, response: ServerResponse) =>
    recording((whole) => found.get(request.socket)?.push(whole))(request, response),
  )
// Earlier complete requests are reported in turns after it.
parser.on('clientError', (_error, socket) => setImmediate(() => setImmediate(() => socket.destroy())))

/** The requests that Node's strict parser finds whole in these bytes. */
function wholeRequests(bytes: Buffer): Promise<readonly string[]> {
  return new Promise((resolve) => {
    const [client, served] = duplexPair()
    const whole: string[] = []
    found.set(served, whole)
    served.once('close', () => {
      client.destroy()
      resolve(whole)
    })
    parser.emit('connection', served)
    client.on('error', () => undefined).resume()
    // Behind a request that asks for another protocol, Node's parser loses what came with it.
    client.end(Buffer.from(bytes.toString('latin1').replaceAll(/^upgrade:/gim, 'xpgrade:'), 'latin1'))
  })
}
