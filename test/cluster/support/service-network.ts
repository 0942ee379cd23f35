import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'

/** Stands in for what leads from an API server to the pods behind a Service: everything it asks for goes to one port. */
export interface ServiceNetwork {
  /** For the API server, which then asks this network for Services (`--egress-selector-config-file`). */
  readonly apiServerArguments: readonly string[]
  /** Where connections lead from now on, on loopback; undefined: nowhere, as a Service without endpoints. */
  lead(port: number | undefined): void
  close(): Promise<void>
}

/**
 * A proxy for the API server's connections to Services (HTTP CONNECT). The webhook configurations that are shipped name a
 * Service, and here they are asked as they are, certificate included.
 */
export async function startServiceNetwork(): Promise<ServiceNetwork> {
  const sockets = new Set<Socket>()
  let leadsTo: number | undefined
  const keep = (socket: Socket): Socket => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    return socket.on('error', () => socket.destroy())
  }
  const server = createServer()
  server.on('connect', (_request, client: Socket, head: Buffer) => {
    keep(client)
    if (leadsTo === undefined) {
      client.end('HTTP/1.1 503 Service Unavailable\r\n\r\n')
      return
    }
    const pod = keep(connect(leadsTo, '127.0.0.1'))
    pod.once('connect', () => {
      client.write('HTTP/1.1 200 OK\r\n\r\n')
      pod.write(head)
      client.pipe(pod).pipe(client)
    })
    pod.once('close', () => client.destroy())
    client.once('close', () => pod.destroy())
  })
  const directory = mkdtempSync(path.join(tmpdir(), 'extauth-network-'))
  const socketPath = path.join(directory, 'network.sock')
  await new Promise<void>((resolve) => server.listen(socketPath, resolve))
  const file = path.join(directory, 'egress.json')
  const connection = { proxyProtocol: 'HTTPConnect', transport: { uds: { udsName: socketPath } } }
  writeFileSync(
    file,
    JSON.stringify({
      apiVersion: 'apiserver.k8s.io/v1beta1',
      kind: 'EgressSelectorConfiguration',
      egressSelections: [{ name: 'cluster', connection }],
    }),
  )
  return {
    apiServerArguments: ['--egress-selector-config-file', file],
    lead(port) {
      leadsTo = port
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
