import type { IncomingHttpHeaders } from 'node:http'
import type { Sockets } from './sockets.ts'

/** A request as a server of tests got it. */
export interface SeenRequest {
  /** Method and target. */
  readonly line: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** A server that answers with `status` and `body`, and the requests that it got. */
export async function recording(sockets: Sockets, status: number, type: string, body: string) {
  const seen: SeenRequest[] = []
  const url = await sockets.http((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString()
      seen.push({ line: `${request.method} ${request.url}`, headers: request.headers, body: text })
      response.writeHead(status, { 'content-type': type }).end(body)
    })
  })
  return { url, seen }
}
