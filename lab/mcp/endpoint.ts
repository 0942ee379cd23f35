import { randomUUID } from 'node:crypto'
import {
  createMcpHandler,
  isInitializeRequest,
  isLegacyRequest,
  type McpServer,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server'
import { createEventStore } from './event-store.ts'
import { createMcpServerFactory } from './server.ts'
import type { LabState } from './state.ts'

/** Bound of a request body; larger than the 10 MiB that a proxy keeps for signing, so that the proxy's limit is the one seen. */
export const MAX_BODY_BYTES = 32 * 1024 * 1024

const MAX_SESSIONS = 1000
const RETRY_MS = 500

interface Session {
  readonly server: McpServer
  readonly transport: WebStandardStreamableHTTPServerTransport
}

/** Serves MCP of both eras at one address. */
export interface McpEndpoint {
  readonly fetch: (request: Request) => Promise<Response>
  /** Ids of the open sessions (2025-11-25), oldest first. */
  readonly sessions: () => string[]
  close(): Promise<void>
}

const refusal = (status: number, message: string) =>
  Response.json({ jsonrpc: '2.0', error: { code: -32000, message }, id: null }, { status })

/**
 * Both eras side by side: 2026-07-28 stateless, one server per request, and 2025-11-25 with sessions, GET streams that
 * can be resumed, and DELETE.
 */
export function createMcpEndpoint(state: LabState, conformance: boolean): McpEndpoint {
  const factory = createMcpServerFactory(state, conformance)
  const sessions = new Map<string, Session>()
  const modern = createMcpHandler(factory, { legacy: 'reject', maxRequestBodySize: MAX_BODY_BYTES })

  state.announce = (what) => {
    if (what === 'tools') modern.notify.toolsChanged()
    else modern.notify.promptsChanged()
    for (const { server } of sessions.values()) {
      if (what === 'tools') server.sendToolListChanged()
      else server.sendPromptListChanged()
    }
  }

  async function open(request: Request): Promise<Response> {
    const server = factory()
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      eventStore: createEventStore(),
      retryInterval: RETRY_MS,
      maxRequestBodySize: MAX_BODY_BYTES,
      onsessioninitialized: (id) => {
        sessions.set(id, { server, transport })
        const oldest = sessions.size > MAX_SESSIONS ? sessions.keys().next().value : undefined
        if (oldest !== undefined) void end(oldest)
      },
      onsessionclosed: (id) => void end(id),
    })
    await server.connect(transport)
    return transport.handleRequest(request)
  }

  async function end(id: string): Promise<void> {
    const session = sessions.get(id)
    sessions.delete(id)
    await session?.server.close()
  }

  async function legacy(request: Request): Promise<Response> {
    const id = request.headers.get('mcp-session-id')
    if (id !== null) {
      const session = sessions.get(id)
      if (session === undefined) return refusal(404, 'Session not found')
      const response = await session.transport.handleRequest(request)
      return request.method === 'GET' ? opened(response, request.signal) : response
    }
    if (request.method !== 'POST') return refusal(400, 'Mcp-Session-Id header is required')
    return (await opensSession(request.clone())) ? open(request) : refusal(400, 'Mcp-Session-Id header is required')
  }

  return {
    fetch: async (request) =>
      (await isLegacyRequest(request, undefined, { maxRequestBodySize: MAX_BODY_BYTES }))
        ? legacy(request)
        : modern.fetch(request),
    sessions: () => [...sessions.keys()],
    close: async () => {
      await modern.close()
      await Promise.all([...sessions.keys()].map(end))
    },
  }
}

/**
 * A GET stream that begins with a comment and ends when its client goes. The node handler sends the head together with the
 * first bytes and looks whether the client is there when it has some: without this a client would not know that its
 * stream is open, and could not open another one after it was cut off.
 */
function opened(response: Response, signal: AbortSignal): Response {
  if (response.body === null || !response.headers.get('content-type')?.startsWith('text/event-stream')) return response
  const reader = response.body.getReader()
  signal.addEventListener('abort', () => void reader.cancel(), { once: true })
  const stream = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new TextEncoder().encode(': open\n\n')),
    pull: async (controller) => {
      const { done, value } = await reader.read()
      if (done) controller.close()
      else controller.enqueue(value)
    },
    cancel: (reason) => reader.cancel(reason),
  })
  return new Response(stream, response)
}

/** Whether the body is `initialize`; a body that is no JSON also goes to a transport, which knows how to refuse it. */
async function opensSession(request: Request): Promise<boolean> {
  try {
    const body: unknown = JSON.parse(await request.text())
    return [body].flat().some((message) => isInitializeRequest(message))
  } catch {
    return true
  }
}
