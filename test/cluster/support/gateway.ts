import { Agent, createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { KubeClient } from '../../../src/kube/index.ts'
import { CLUSTER_TYPES } from '../../../src/operator/index.ts'

/** A gateway that sends every request to the Service of one HTTPRoute. */
export interface Gateway {
  readonly url: string
  /** The Service that requests are sent to now. */
  service(): string | undefined
  close(): Promise<void>
}

const LOOK_MS = 50

/**
 * Follows the HTTPRoute as a controller of gateways does. `ports` has where the pods of each Service listen; a Service that is
 * missing in the cluster has none.
 */
export async function startGateway(
  client: KubeClient,
  namespace: string,
  route: string,
  ports: ReadonlyMap<string, number>,
): Promise<Gateway> {
  let current: string | undefined
  const look = async (): Promise<void> => {
    const { spec } = await client.get(CLUSTER_TYPES.HTTPRoute, namespace, route)
    const { rules } = spec as { rules: { backendRefs: { name: string }[] }[] }
    const name = rules[0]?.backendRefs[0]?.name ?? ''
    current = await client.get(CLUSTER_TYPES.Service, namespace, name).then(
      () => name,
      () => undefined,
    )
  }
  const over = new AbortController()
  const following = (async () => {
    while (!over.signal.aborted) {
      await look().catch(() => undefined)
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    }
  })()
  const agent = new Agent({ keepAlive: true })
  const pass = (request: IncomingMessage, response: ServerResponse): void => {
    const port = current === undefined ? undefined : ports.get(current)
    if (port === undefined) return void response.writeHead(503).end()
    const { method, headers, url } = request
    const onward = httpRequest({ host: '127.0.0.1', port, agent, method, headers, path: url }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
      answer.once('error', () => response.destroy())
    })
    onward.once('error', () => (response.headersSent ? response.destroy() : response.writeHead(502).end()))
    response.once('close', () => onward.destroy())
    request.pipe(onward)
  }
  const server = createServer(pass)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    service: () => current,
    async close() {
      over.abort()
      await following
      agent.destroy()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
