import type { AddressInfo } from 'node:net'
import { createServer, type RequestListener, type Server } from 'node:http'

/** The port that a stand-in should listen on is taken. */
export class PortInUse extends Error {
  readonly port: number

  constructor(port: number, options?: ErrorOptions) {
    super(`port ${port} is in use`, options)
    this.name = 'PortInUse'
    this.port = port
  }
}

export interface Listening {
  /** `http://127.0.0.1:PORT`, without a trailing slash. */
  readonly url: string
  close(): Promise<void>
}

/** Every stand-in binds to loopback and to nothing else. */
const LOOPBACK = '127.0.0.1'

/**
 * Serves `listener` on loopback; port 0 takes a free one. Throws `PortInUse`. `close` ends open connections too, so
 * that idle streams do not keep the process.
 */
export async function listenOnLoopback(port: number, listener: RequestListener): Promise<Listening> {
  const server = createServer({ maxHeaderSize: 64 * 1024, keepAliveTimeout: 4000 }, listener)
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(error.code === 'EADDRINUSE' ? new PortInUse(port, { cause: error }) : error),
    )
    server.listen(port, LOOPBACK, resolve)
  })
  return { url: `http://${LOOPBACK}:${portOf(server)}`, close: () => closed(server) }
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}
