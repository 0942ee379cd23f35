import { connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import {
  ConnectionBudget,
  type ExchangeControl,
  type ExchangeHandler,
  Pool,
  type WireRequest,
} from '../../../src/wire/index.ts'
import type { PoolOptions } from '../../../src/wire/pool.ts'
import type { Sockets } from '../sockets.ts'

/** Records the events of an exchange. */
export class RecordingHandler implements ExchangeHandler {
  readonly events: string[] = []
  readonly over: Promise<string>
  control: ExchangeControl | undefined
  /** Result of `dispatch`. */
  dispatched: ExchangeControl | undefined
  socket: Duplex | undefined
  body = ''
  readonly #end = Promise.withResolvers<string>()
  readonly #on: Partial<Record<string, (control: ExchangeControl) => void>>

  /** @param on what to do at an event, by its name */
  constructor(on: Partial<Record<string, (control: ExchangeControl) => void>> = {}) {
    this.#on = on
    this.over = this.#end.promise
  }

  onRequestStart(control: ExchangeControl): void {
    this.control = control
    this.#tell('start', control)
  }
  onResponseStart(control: ExchangeControl, status: number): void {
    this.#tell(String(status), control)
  }
  onResponseData(control: ExchangeControl, data: Buffer): void {
    this.body += data.toString('latin1')
    this.#on['data']?.(control)
  }
  onResponseEnd(control: ExchangeControl): void {
    this.#end.resolve(`end ${this.body}`)
    this.#tell('end', control)
  }
  onResponseError(_control: ExchangeControl | undefined, error: Error): void {
    const text = 'code' in error ? String(error.code) : error.message
    this.events.push(text)
    this.#end.resolve(text)
  }
  onRequestUpgrade(control: ExchangeControl, status: number, _headers: unknown, socket: Duplex): void {
    this.socket = socket
    this.#end.resolve('upgraded')
    this.#tell(`upgrade ${status}`, control)
  }

  #tell(event: string, control: ExchangeControl): void {
    this.events.push(event)
    this.#on[event]?.(control)
  }
}

export interface Peer {
  readonly pool: Pool
  /** Its connections, in the order in which they came. */
  readonly connections: Socket[]
  readonly send: (request?: Partial<WireRequest>, recorded?: RecordingHandler) => RecordingHandler
}

/** A peer that does this with each of its connections, and a pool of connections to it. */
export async function startPeer(
  sockets: Sockets,
  onConnection: (socket: Socket, index: number) => void,
  options: Partial<PoolOptions> = {},
): Promise<Peer> {
  const connections: Socket[] = []
  const origin = await sockets.tcp((socket) => {
    onConnection(socket, connections.push(socket) - 1)
  })
  const port = Number(new URL(origin).port)
  const pool = new Pool({
    authority: 'peer',
    connect: () =>
      new Promise((resolve, reject) => {
        const socket = connect(port, '127.0.0.1', () => resolve(socket)).on('error', reject)
      }),
    bounds: { firstByteMs: 0, idleMs: 0 },
    keepMs: 60_000,
    maxConnections: 100,
    budget: new ConnectionBudget(Infinity),
    waitMs: 0,
    ...options,
  })
  sockets.closing({ close: () => pool.destroy() })
  return {
    pool,
    connections,
    send: (request = {}, recorded = new RecordingHandler()) => {
      recorded.dispatched = pool.dispatch({ method: 'GET', path: '/', headers: [], body: null, ...request }, recorded)
      return recorded
    },
  }
}

/** Answers each request that has no body with `text`. */
export const answering =
  (text: string) =>
  (socket: Socket): void =>
    void socket.on('data', (data: Buffer) => {
      for (let count = data.toString('latin1').split('\r\n\r\n').length - 1; count > 0; count--)
        socket.write(text, 'latin1')
    })

/** Until everything that waits in this process has had its turn. */
export const turns = async (): Promise<void> => {
  for (let count = 0; count < 20; count++) await new Promise((resolve) => setImmediate(resolve))
}

export const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'
