import type { ClientRequest } from '../core/index.ts'
import type { Socket } from 'node:net'
import { clientBehind, createTrustedProxies, UNIX, type TrustedProxies } from './client.ts'
import { forwardedHeaders, plainAddress, type Client } from './forwarded.ts'

/** The other end of a connection: a client, or a proxy that forwards for clients. */
export class Peer {
  readonly #own: Client
  /** Set only if this peer is trusted. */
  readonly #trusted: TrustedProxies | undefined
  #host: string | undefined = undefined
  #client: Client | undefined = undefined
  #headers: readonly string[] = []

  constructor(
    socket: Socket,
    options: { readonly isSecure: boolean; readonly trustedProxies: TrustedProxies | undefined },
  ) {
    const address = socket.remoteAddress === undefined ? UNIX : plainAddress(socket.remoteAddress)
    this.#own = { address, isSecure: options.isSecure }
    this.#trusted = options.trustedProxies?.includes(address) === true ? options.trustedProxies : undefined
  }

  get address(): string {
    return this.#own.address
  }

  /** The client of a request: the peer itself, or the one named by a trusted proxy (`listen.trustedProxies`). */
  clientOf({ headers }: ClientRequest): Client {
    return this.#trusted === undefined ? this.#own : clientBehind(this.#own, headers, this.#trusted)
  }

  /** Forwarding headers with the actual client, flat; cached, since requests of a client are mostly alike. */
  forwarded(request: ClientRequest): readonly string[] {
    const host = request.headers.host ?? ''
    const client = this.clientOf(request)
    const isSame =
      host === this.#host && client.address === this.#client?.address && client.isSecure === this.#client.isSecure
    if (!isSame) {
      this.#host = host
      this.#client = client
      this.#headers = forwardedHeaders(client, host)
    }
    return this.#headers
  }
}

/**
 * Determines the client of a request behind trusted `entries`, for a server whose trusted proxies may change while it
 * listens. Throws `config_error` for an invalid range.
 */
export function createClientOf(entries: readonly string[]): (request: ClientRequest) => Client {
  const trustedProxies = createTrustedProxies(entries)
  // The registry has no TLS of its own.
  return (request) => new Peer(request.socket, { isSecure: false, trustedProxies }).clientOf(request)
}
