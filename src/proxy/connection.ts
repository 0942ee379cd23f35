import type { Duplex } from 'node:stream'
import type { Socket } from 'node:net'
import type { Exchange } from './exchange.ts'

/** What is remembered of one client connection. */
export class Connection {
  /** Address of the client as `Forwarded` wants it; `unknown` for Unix sockets (RFC 7239 §6). */
  readonly peer: string
  readonly proto: 'http' | 'https'
  readonly #active: Exchange[] = []
  last: Exchange | undefined = undefined
  #host: string | undefined = undefined
  #forwarded: readonly string[] = []

  constructor(socket: Duplex, proto: 'http' | 'https') {
    this.peer = (socket as Socket).remoteAddress?.replace(/^::ffff:(?=\d+\.)/i, '') ?? 'unknown'
    this.proto = proto
  }

  /** Requests that are being answered; more than one when the client pipelines. */
  get active(): readonly Exchange[] {
    return this.#active
  }

  begin(exchange: Exchange): void {
    this.#active.push(exchange)
  }

  finish(exchange: Exchange): void {
    const at = this.#active.indexOf(exchange)
    if (at >= 0) this.#active.splice(at, 1)
  }

  /** True headers about where a request came from, flat; the same for every request with the same Host. */
  forwarded(host: string): readonly string[] {
    if (host === this.#host) return this.#forwarded
    const node = this.peer.includes(':') ? `"[${this.peer}]"` : this.peer
    this.#host = host
    this.#forwarded = [
      'forwarded',
      `for=${node};host="${host}";proto=${this.proto}`,
      'x-forwarded-for',
      this.peer,
      'x-forwarded-host',
      host,
      'x-forwarded-proto',
      this.proto,
    ]
    return this.#forwarded
  }
}

/** Connections by their socket; forgotten with it. `onClose` is called when a socket closes, before it is forgotten. */
export function createConnections(
  proto: 'http' | 'https',
  onClose: (connection: Connection) => void,
): { of(socket: Duplex): Connection } {
  const connections = new WeakMap<Duplex, Connection>()
  return {
    of(socket) {
      let connection = connections.get(socket)
      if (connection === undefined) {
        const made = new Connection(socket, proto)
        connections.set(socket, made)
        socket.once('close', () => onClose(made))
        connection = made
      }
      return connection
    },
  }
}
