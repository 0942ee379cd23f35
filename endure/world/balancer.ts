import { connect, createServer, type Socket } from 'node:net'
import { freePort } from '../../lab/free-port.ts'

/** A target of connections, and whether it reports ready. */
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
  /** Resolves when all members are ready. */
  untilReady(): Promise<void>
  close(): Promise<void>
}

const PROBE_EVERY_MS = 500
const PROBE_MS = 2_000
/** So many probes in a row without an answer, as the kubelet does it; a refusal counts at once. */
const MOST_SILENT = 2

/** Opens it on a free port of loopback, without members. */
export async function openBalancer(): Promise<Balancer> {
  const port = await freePort()
  const ready = new Set<number>()
  const silent = new Map<number, number>()
  const sockets = new Set<Socket>()
  let turn = 0
  const server = createServer((client) => {
    const fit = balancer.members().filter((member) => ready.has(member.port))
    turn += 1
    const first = turn % Math.max(1, fit.length)
    const ports = [...fit.slice(first), ...fit.slice(0, first)].map((member) => member.port)
    sockets.add(client)
    client.on('error', () => client.destroy()).on('close', () => sockets.delete(client))
    join(client, ports)
  })
  const probe = async ({ port: own, readinessUrl }: Member): Promise<void> => {
    const status = await fetch(readinessUrl, { signal: AbortSignal.timeout(PROBE_MS) }).then(
      async (response) => (await response.arrayBuffer(), response.status),
      (error: unknown) => ((error as Error).name === 'TimeoutError' ? 'silent' : 'refused'),
    )
    const times = status === 'silent' ? (silent.get(own) ?? 0) + 1 : 0
    silent.set(own, times)
    if (status === 200) ready.add(own)
    else if (status !== 'silent' || times >= MOST_SILENT) ready.delete(own)
  }
  const probing = setInterval(() => {
    for (const member of balancer.members()) void probe(member)
  }, PROBE_EVERY_MS)
  const balancer: Balancer = {
    port,
    url: `http://127.0.0.1:${port}`,
    members: () => [],
    async untilReady() {
      while (!balancer.members().every((member) => ready.has(member.port)))
        await new Promise((resolve) => setTimeout(resolve, PROBE_EVERY_MS / 5))
    },
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

/** Joins a client with the first of these that takes a connection; nothing has been sent to those that do not. */
function join(client: Socket, [port, ...others]: readonly number[]): void {
  if (port === undefined) {
    client.resetAndDestroy()
    return
  }
  const replica = connect(port, '127.0.0.1')
  const next = (): void => join(client, others)
  replica.once('error', next)
  replica.once('connect', () => {
    replica.off('error', next)
    client.pipe(replica)
    replica.pipe(client)
    client.once('close', () => replica.destroy())
    replica.on('error', () => client.resetAndDestroy())
    replica.once('close', () => client.destroySoon())
  })
}
