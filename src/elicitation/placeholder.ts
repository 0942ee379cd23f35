import type { ServerNotifier } from '@modelcontextprotocol/server'
import type { EndpointResponse } from '../core/index.ts'
import { EventStream } from './event-stream.ts'

/** The name of the placeholder's only tool. */
export const CONNECT_TOOL = 'connect_account'

/** A request for the placeholder server. */
export interface PlaceholderRequest {
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  /** Name of the provider to show. */
  readonly label: string
  /** Of this program. */
  readonly version: string
  /**
   * The stream of `subscriptions/listen`: called with the notifier and with a function that ends the stream after what was
   * sent; returns what to do when the stream has ended.
   */
  readonly onStream?: ((notify: ServerNotifier, end: () => void) => () => void) | undefined
}

/** Limit of the body that the server package reads itself; the route's own limit was applied before. */
const MAX_BODY_BYTES = 64 * 1024 * 1024

/**
 * Answers handshake, lists and pings in place of a backend that needs a credential for these as well (connections.md
 * §2), with the official server package. `tools/call` never gets here.
 */
export async function answerAsPlaceholder(request: PlaceholderRequest): Promise<EndpointResponse> {
  // Loaded when the first caller has no connection.
  const { createMcpHandler, McpServer } = await import('@modelcontextprotocol/server')
  const { label, version, headers, body, onStream } = request
  const text = `The ${label} account is not connected. Call ${CONNECT_TOOL} to get the link to connect it.`
  const handler = createMcpHandler(
    () => {
      const server = new McpServer(
        { name: 'mcp-extauth', title: `${label}: account not connected`, version },
        { instructions: text, capabilities: { tools: { listChanged: true } } },
      )
      server.registerTool(
        CONNECT_TOOL,
        {
          title: `Connect your ${label} account`,
          description: `Returns the link at which you connect your ${label} account. The tools of this server appear after that.`,
          annotations: { readOnlyHint: true },
        },
        () => ({ isError: true, content: [{ type: 'text', text }] }),
      )
      return server
    },
    { legacy: 'stateless', maxRequestBodySize: MAX_BODY_BYTES },
  )
  const response = await handler.fetch(
    new Request('http://localhost/mcp', { method: 'POST', headers: { ...headers }, body: new Uint8Array(body) }),
  )
  const given = Object.fromEntries(response.headers)
  if (onStream !== undefined && response.body !== null && given['content-type']?.startsWith('text/event-stream')) {
    const reader = response.body.getReader()
    const stop = onStream(handler.notify, () => void handler.close())
    const stream = new EventStream(() => {
      stop()
      void reader.cancel().catch(() => undefined)
      void handler.close()
    })
    void forward(reader, stream)
    return { status: response.status, headers: given, body: stream }
  }
  return { status: response.status, headers: given, body: Buffer.from(await response.arrayBuffer()) }
}

async function forward(reader: ReadableStreamDefaultReader<Uint8Array>, stream: EventStream): Promise<void> {
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      stream.push(value)
    }
  } finally {
    stream.push(null)
  }
}
