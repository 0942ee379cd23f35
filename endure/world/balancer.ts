import { connect, createServer, type Socket } from 'node:net'
import { freePort } from '../../lab/free-port.ts'

/** Who takes connections, and whether it says that it is ready for them. */
export interface Member {
  readonly port: number
  readonly readinessUrl: string
}

/** The one address of all replicas, as a Service of Kubernetes is: connections go in turn to those that are ready. */
export interface Balancer {
  readonly port: number
  readonly url: string
  /** Asked for at each connection: replicas come and go. */
  members: () => readonly Member[]
  close(): Promise<void>
}

const PROBE_EVERY_MS = 250
const PROBE_MS = 1_000

/** Opens it on a free port of loopback, without members. */
export async function openBalancer(): Promise<Balancer> {
  const port = await freePort()
  const ready = new Set<number>()
  const sockets = new Set<Socket>()
  let turn = 0
  const server = createServer((client) => {
    const fit = balancer.members().filter((member) => ready.has(member.port))
    const member = fit[turn++ % Math.max(1, fit.length)]
    if (member === undefined) {
      client.resetAndDestroy()
      return
    }
    const replica = connect(member.port, '127.0.0.1')
    for (const [one, other] of [
      [client, replica],
      [replica, client],
    ] as const) {
      sockets.add(one)
      one.on('error', () => other.destroy())
      one.on('close', () => (sockets.delete(one), other.destroy()))
      one.pipe(other)
    }
  })
  const probe = async ({ port: own, readinessUrl }: Member): Promise<void> => {
    const isReady = await fetch(readinessUrl, { signal: AbortSignal.timeout(PROBE_MS) }).then(
      async (response) => (await response.arrayBuffer(), response.status === 200),
      () => false,
    )
    if (isReady) ready.add(own)
    else ready.delete(own)
  }
  const probing = setInterval(() => {
    for (const member of balancer.members()) void probe(member)
  }, PROBE_EVERY_MS)
  const balancer: Balancer = {
    port,
    url: `http://127.0.0.1:${port}`,
    members: () => [],
    close: async () => {
      clearInterval(probing)
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  return balancer
}
