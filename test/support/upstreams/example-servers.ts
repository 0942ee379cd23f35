import { DemoInMemoryAuthProvider } from '@modelcontextprotocol/sdk/examples/server/demoInMemoryOAuthProvider.js'
import { mcpAuthRouter } from '@modelcontextprotocol/sdk/server/auth/router.js'
import express from 'express'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Sockets } from '../sockets.ts'

/** The authorization server of the official SDK's examples, and an MCP server that names it. */
export async function startExampleServers(sockets: Sockets) {
  const app = express()
  const server = createServer(app as Parameters<typeof createServer>[1])
  // The issuer of the SDK's metadata has a slash.
  const issuer = `http://${await sockets.listen(server)}/`
  const resources: (string | undefined)[] = []
  const demo = new DemoInMemoryAuthProvider((resource) => resources.push(resource?.href) > 0)
  const revoked: string[] = []
  /** Tokens that the MCP server accepted. */
  const accepted: string[] = []
  const provider = Object.assign(demo, {
    revokeToken: (_client: unknown, { token }: { readonly token: string }) => Promise.resolve(void revoked.push(token)),
  })
  /** Everything that was sent to the authorization server. */
  const sent: string[] = []
  server.prependListener('request', (request: IncomingMessage) => {
    sent.push(JSON.stringify([request.url, request.rawHeaders]))
    request.on('data', (chunk: Buffer) => sent.push(chunk.toString()))
  })
  const registrations: unknown[] = []
  app.use('/register', express.json(), (request, _response, next) => {
    registrations.push(request.body)
    next()
  })
  app.use(mcpAuthRouter({ provider, issuerUrl: new URL(issuer), scopesSupported: ['mcp:tools'] }))
  /** `accepts`: the server whose tokens the MCP server accepts. */
  const state = { issuer, accepts: demo, challenge: true, resource: '', scope: '' }
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (request.url === '/.well-known/oauth-protected-resource/mcp') {
      response.setHeader('content-type', 'application/json')
      response.end(
        JSON.stringify({
          resource: state.resource,
          authorization_servers: [state.issuer],
          scopes_supported: ['mcp:tools'],
        }),
      )
      return
    }
    const token = request.headers.authorization?.replace('Bearer ', '') ?? ''
    const isValid = await state.accepts.verifyAccessToken(token).then(
      () => true,
      () => false,
    )
    if (isValid) {
      accepted.push(token)
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      const { id } = JSON.parse(Buffer.concat(chunks).toString()) as { id: unknown }
      const result = { resultType: 'complete', content: [{ type: 'text', text: 'from the remote server' }] }
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result }))
      return
    }
    const scope = state.scope === '' ? '' : `, scope="${state.scope}"`
    const metadata = `${backend}/.well-known/oauth-protected-resource/mcp`
    response.writeHead(
      401,
      state.challenge ? { 'www-authenticate': `Bearer resource_metadata="${metadata}"${scope}` } : {},
    )
    response.end()
  }
  const backend: string = await sockets.http((request, response) => void serve(request, response))
  state.resource = `${backend}/mcp`
  return { state, backend, provider, resources, registrations, revoked, accepted, sent }
}
