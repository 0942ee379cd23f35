import { randomBytes } from 'node:crypto'
import { createRequestStateCodec, McpServer } from '@modelcontextprotocol/server'
import { registerAskingPrompt, registerAskingTools, registerRoundTools } from './fixture-input.ts'
import { registerPrompts, registerResources } from './fixture-resources.ts'
import { registerContentTools, registerStreamingTools } from './fixture-tools.ts'
import { registerLabTools, registerNoteTools } from './lab-tools.ts'
import type { LabState } from './state.ts'

/**
 * A factory of the lab's MCP server: a real server of the official package with the tools that show what reached it and, with
 * `conformance`, the tools of the official conformance suite. A server serves one session (2025-11-25) or one request (2026-07-28).
 */
export function createMcpServerFactory(state: LabState, conformance: boolean): () => McpServer {
  const codec = createRequestStateCodec<{ readonly step: string }>({ key: randomBytes(32) })
  return () => {
    const server = new McpServer(
      { name: 'extauth-lab', version: '1.0.0' },
      {
        instructions: 'A demo service: `show_request` returns the request that reached this server.',
        capabilities: {
          logging: {},
          completions: {},
          tools: { listChanged: true },
          prompts: { listChanged: true },
          resources: { listChanged: true, subscribe: true },
        },
        requestState: { verify: (sealed, ctx) => codec.verify(sealed, ctx) },
      },
    )
    registerLabTools(server, state)
    registerNoteTools(server, state)
    if (conformance) {
      registerContentTools(server)
      registerStreamingTools(server, state)
      registerAskingTools(server)
      registerRoundTools(server, codec)
    }
    registerResources(server)
    registerPrompts(server, state)
    registerAskingPrompt(server)
    const subscribed = new Set<string>()
    server.server.setRequestHandler('resources/subscribe', ({ params }) => {
      subscribed.add(params.uri)
      return {}
    })
    server.server.setRequestHandler('resources/unsubscribe', ({ params }) => {
      subscribed.delete(params.uri)
      return {}
    })
    return server
  }
}
