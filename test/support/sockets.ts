import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer, type ServerOptions } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Server as TcpServer, type Socket } from 'node:net'

/** Servers and clients of one test; `closeAll` belongs in `afterEach`. */
export interface Sockets {
  /** A plain HTTP server on a free loopback port; gives its origin. */
  http(listener: RequestListener): Promise<string>
  https(options: ServerOptions, listener: RequestListener): Promise<string>
  /** A server of raw connections, whose errors are swallowed; gives an `http://` origin. */
  tcp(onConnection: (socket: Socket) => void): Promise<string>
  /** Any server; gives `127.0.0.1:port`. Its connections are destroyed at the end. */
  listen(server: TcpServer): Promise<string>
  /** Registers anything that has to be closed. */
  closing<T extends { close(): unknown }>(thing: T): T
  closeAll(): Promise<void>
}

/** Opens real sockets for a test and knows how to end them all. */
export const createSockets = (): Sockets => {
  const things: { close(): unknown }[] = []
  const connections = new Set<Socket>()
  const sockets: Sockets = {
    listen: async (server) => {
      server.on('connection', (socket: Socket) => {
        connections.add(socket)
        socket.on('error', () => undefined).on('close', () => connections.delete(socket))
      })
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      things.push({ close: () => new Promise((resolve) => server.close(resolve)) })
      return `127.0.0.1:${(server.address() as AddressInfo).port}`
    },
    http: async (listener) => `http://${await sockets.listen(createServer(listener))}`,
    https: async (options, listener) => `https://${await sockets.listen(createTlsServer(options, listener))}`,
    tcp: async (onConnection) =>
      `http://${await sockets.listen(createTcpServer({ allowHalfOpen: true }, onConnection))}`,
    closing: (thing) => {
      things.push(thing)
      return thing
    },
    closeAll: async () => {
      // Connections first: a server's `close` waits for them.
      const closing = things.splice(0).map((thing) => thing.close())
      for (const connection of connections) connection.destroy()
      await Promise.all(closing)
    },
  }
  return sockets
}
