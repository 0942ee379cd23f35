import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'

/** The port of a demo service is in use. */
export class PortInUse extends Error {
  readonly port: number

  constructor(port: number, options?: ErrorOptions) {
    super(`port ${port} is in use`, options)
    this.name = 'PortInUse'
    this.port = port
  }
}

export interface Listening {
  /** `http://127.0.0.1:PORT` (`https` with TLS), without a trailing slash. */
  readonly url: string
  close(): Promise<void>
}

const MAX_HEADER_BYTES = 64 * 1024
/** The default of 511 resets connections of a burst while the event loop is busy. */
const BACKLOG = 4096

/**
 * Serves `listener` on loopback and nowhere else, over Node's HTTP server, whose requests and responses its libraries want;
 * port 0 takes a free one. Throws `PortInUse`. `close` ends open connections too, so that idle streams do not keep the process.
 */
export async function listenOnLoopback(
  port: number,
  listener: RequestListener,
  tls?: { readonly cert: Buffer; readonly key: Buffer },
): Promise<Listening> {
  const settings = { maxHeaderSize: MAX_HEADER_BYTES, keepAliveTimeout: 4000 }
  const server =
    tls === undefined ? createServer(settings, listener) : createTlsServer({ ...settings, ...tls }, listener)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ port, host: '127.0.0.1', backlog: BACKLOG }, resolve)
  }).catch((cause: NodeJS.ErrnoException) => {
    throw cause.code === 'EADDRINUSE' ? new PortInUse(port, { cause }) : cause
  })
  const scheme = tls === undefined ? 'http' : 'https'
  return {
    url: `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
