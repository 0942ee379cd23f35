import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import type { Sockets } from '../sockets.ts'

/** A kubeconfig for the server at `server`, without user authentication. */
export const kubeconfig = (server: string): string => `apiVersion: v1
kind: Config
current-context: one
contexts: [{ name: one, context: { cluster: one, user: one } }]
clusters: [{ name: one, cluster: { server: '${server}' } }]
users: [{ name: one, user: { token: none } }]
`

export interface ApiServer {
  readonly url: string
  /** `VERB path` of each write that was taken, in order, and what it carried. */
  readonly writes: readonly { readonly what: string; readonly body: string }[]
}

/**
 * An API server that holds these objects, by the plural of their kind, and takes whatever is written without keeping it,
 * leases aside; nothing happens there that a watch would tell. `isAnswered` may answer a request otherwise, and says so.
 */
export async function startApiServer(
  sockets: Sockets,
  held: Readonly<Record<string, readonly object[]>> = {},
  isAnswered: (request: IncomingMessage, response: ServerResponse) => boolean = () => false,
): Promise<ApiServer> {
  const writes: { what: string; body: string }[] = []
  const leases = new Map<string, string>()
  const isOne = /\/(leases|secrets|namespaces|\w+webhookconfigurations)\/[^/]+$/
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<unknown> => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://api')
    const { method = '' } = request
    response.setHeader('content-type', 'application/json')
    if (isAnswered(request, response)) return undefined
    if (searchParams.has('watch')) return response.flushHeaders()
    if (method !== 'GET') {
      const body = await text(request)
      writes.push({ what: `${method} ${pathname}`, body })
      if (pathname.includes('/leases')) leases.set(nameOf(body), body)
      return response.writeHead(201).end(body)
    }
    const lease = leases.get(pathname.split('/').at(-1) ?? '')
    if (lease !== undefined) return response.end(lease)
    if (isOne.test(pathname)) return response.writeHead(404).end('{"kind":"Status","reason":"NotFound","code":404}')
    const items = held[pathname.split('/').at(-1) ?? ''] ?? []
    return response.end(JSON.stringify({ metadata: { resourceVersion: '1' }, items }))
  }
  const url = await sockets.http((request, response) => {
    answer(request, response).catch((error: unknown) => response.destroy(error as Error))
  })
  return { url, writes }
}

const nameOf = (body: string): string => (JSON.parse(body) as { metadata: { name: string } }).metadata.name
