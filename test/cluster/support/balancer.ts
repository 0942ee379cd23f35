import { connect, createServer, type Server, type Socket } from 'node:net'

/** Stands in for a Service: one address in front of several replicas. */
export interface Balancer {
  readonly port: number
  /** Sends nothing new to this port: what the endpoints of a Service do soon after its pod began to end. */
  forget(port: number): void
  /** Sends to it again. */
  remember(port: number): void
  close(): Promise<void>
}

/** Sends each new connection to the next port on loopback that takes it. */
export async function startBalancer(ports: readonly number[]): Promise<Balancer> {
  const forgotten = new Set<number>()
  const sockets = new Set<Socket>()
  let next = 0
  const keep = (socket: Socket): void => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    socket.on('error', () => socket.destroy())
  }
  const forward = (client: Socket, tries: number): void => {
    const known = ports.filter((port) => !forgotten.has(port))
    const port = known[next++ % known.length] ?? 0
    const replica = connect(port, '127.0.0.1')
    replica.once('connect', () => {
      keep(replica)
      client.pipe(replica).pipe(client)
      client.once('close', () => replica.destroy())
      replica.once('close', () => client.destroy())
    })
    replica.once('error', () => {
      if (!sockets.has(replica) && tries > 1) forward(client, tries - 1)
      else client.destroy()
    })
  }
  const server: Server = createServer((client) => {
    keep(client)
    forward(client, ports.length)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    forget: (port) => void forgotten.add(port),
    remember: (port) => void forgotten.delete(port),
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy()
        server.close(() => resolve())
      }),
  }
}
