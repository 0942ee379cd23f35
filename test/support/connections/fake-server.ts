import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Sockets } from '../sockets.ts'

/** What a fake MCP server and its authorization server answer; a test replaces parts of it. */
export interface FakeServer {
  readonly url: string
  /** Paths that were requested. */
  readonly asked: string[]
  /** Status and `WWW-Authenticate` of the MCP server; undefined closes the connection. */
  challenge: readonly [status: number, challenge: string | undefined] | undefined
  /** Protected-resource metadata; undefined: 404. */
  resource: unknown
  /** Authorization server metadata; undefined: 404. */
  server: unknown
  /** Response to a registration. */
  registration: readonly [status: number, body: unknown]
}

/** An MCP server on plain http that is its own authorization server, right in everything that is not replaced. */
export async function startFakeServer(sockets: Sockets): Promise<FakeServer> {
  const asked: string[] = []
  const answer = (response: ServerResponse, status: number, body: unknown): void => {
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(typeof body === 'string' ? body : JSON.stringify(body))
  }
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    const path = request.url ?? ''
    asked.push(path)
    if (path === '/mcp') {
      if (fake.challenge === undefined) return void request.socket.destroy()
      const [status, challenge] = fake.challenge
      return void response.writeHead(status, challenge === undefined ? {} : { 'www-authenticate': challenge }).end()
    }
    if (path === '/register') return answer(response, ...fake.registration)
    const document = path.startsWith('/.well-known/oauth-protected-resource') ? fake.resource : fake.server
    const isKnown = path.startsWith('/.well-known/') && document !== undefined
    answer(response, isKnown ? 200 : 404, isKnown ? document : {})
  }
  const url: string = await sockets.http(serve)
  const fake: FakeServer = {
    url,
    asked,
    challenge: [401, `Bearer resource_metadata="${url}/.well-known/oauth-protected-resource/mcp"`],
    resource: { resource: `${url}/mcp`, authorization_servers: [url], scopes_supported: ['read'] },
    server: serverMetadata(url),
    registration: [201, { client_id: 'registered', token_endpoint_auth_method: 'none' }],
  }
  return fake
}

const serverMetadata = (url: string) => ({
  issuer: url,
  authorization_endpoint: `${url}/authorize`,
  token_endpoint: `${url}/token`,
  registration_endpoint: `${url}/register`,
  code_challenge_methods_supported: ['S256'],
  response_types_supported: ['code'],
  token_endpoint_auth_methods_supported: ['none'],
})
