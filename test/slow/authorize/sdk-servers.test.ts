import type { RequestListener } from 'node:http'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { Server as EarlierServer } from '@modelcontextprotocol/sdk/server/index.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import { afterEach, expect, it } from 'vitest'
import { compareReadings, ECHO_TOOLS } from '../../support/authorize/sdk-readings.ts'
import { createSockets } from '../../support/sockets.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const TOOLS = ECHO_TOOLS.map((name) => ({ name, inputSchema: { type: 'object' as const } }))
const echo = (params: { readonly name: string; readonly arguments?: unknown }) => ({
  content: [{ type: 'text' as const, text: JSON.stringify({ name: params.name, arguments: params.arguments }) }],
})

/** A server of SDK 2, for both protocol versions without sessions. */
async function currentServer(): Promise<string> {
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: 'echo', version: '1.0.0' }, { capabilities: { tools: {} } })
    server.server.setRequestHandler('tools/list', () => ({ tools: TOOLS }))
    server.server.setRequestHandler('tools/call', ({ params }) => echo(params))
    return server
  })
  sockets.closing(handler)
  return sockets.http(toNodeHandler(handler) as unknown as RequestListener)
}

/** A server of SDK 1; answers as JSON or as event streams. */
function earlierServer(enableJsonResponse: boolean): Promise<string> {
  return sockets.http((request, response) => {
    void (async () => {
      const server = new EarlierServer({ name: 'echo', version: '1.0.0' }, { capabilities: { tools: {} } })
      server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: TOOLS }))
      server.setRequestHandler(CallToolRequestSchema, ({ params }) => echo(params))
      const transport = new StreamableHTTPServerTransport({ enableJsonResponse })
      response.on('close', () => void server.close())
      await server.connect(transport)
      await transport.handleRequest(request, response)
    })()
  })
}

it.each([
  ['SDK 2', currentServer],
  ['SDK 1, JSON', () => earlierServer(true)],
  ['SDK 1, event streams', () => earlierServer(false)],
])(
  'a server of the TypeScript %s parses each call as the rules evaluated it',
  async (_name, start) => {
    const { wrong, forwarded, refused } = await compareReadings(sockets, `${await start()}/mcp`, 1500)
    expect(wrong).toEqual([])
    expect(forwarded).toBeGreaterThan(100)
    expect(refused).toBeGreaterThan(500)
  },
  180_000,
)
