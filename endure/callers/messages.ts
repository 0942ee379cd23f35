import { createHash } from 'node:crypto'

/** The two eras of the protocol. */
export const MODERN = '2026-07-28'
export const LEGACY = '2025-11-25'

export interface Body {
  readonly text: string
  readonly digest: string
  readonly headers: Readonly<Record<string, string>>
}

const CLIENT = { name: 'endure', version: '1.0.0' }

const bodyOf = (message: object, headers: Readonly<Record<string, string>>): Body => {
  const text = JSON.stringify(message)
  return { text, digest: createHash('sha256').update(text).digest('hex'), headers }
}

export interface ToolCall {
  readonly id: string
  readonly tool: string
  readonly arguments?: Readonly<Record<string, unknown>>
  /** Wants notifications of progress, under the id of the call. */
  readonly wantsProgress?: boolean
  /** So many characters more. */
  readonly padding?: number
  /** Capabilities of the client. */
  readonly capabilities?: object
}

const metaOf = ({ id, wantsProgress = false, padding = 0 }: ToolCall): Record<string, unknown> => ({
  ...(wantsProgress ? { progressToken: id } : {}),
  ...(padding === 0 ? {} : { 'endure/padding': 'x'.repeat(padding) }),
})

/** A call of a tool in one POST, without a session; `more`: further parameters, the last of all. */
export const modernCall = (call: ToolCall, more: object = {}): Body =>
  bodyOf(
    {
      jsonrpc: '2.0',
      id: call.id,
      method: 'tools/call',
      params: {
        name: call.tool,
        arguments: call.arguments ?? {},
        _meta: {
          'io.modelcontextprotocol/protocolVersion': MODERN,
          'io.modelcontextprotocol/clientInfo': CLIENT,
          'io.modelcontextprotocol/clientCapabilities': call.capabilities ?? {},
          ...metaOf(call),
        },
        ...more,
      },
    },
    { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/call', 'mcp-name': call.tool },
  )

/** The same within a session. */
export const legacyCall = (call: ToolCall, session: string): Body =>
  bodyOf(
    {
      jsonrpc: '2.0',
      id: call.id,
      method: 'tools/call',
      params: { name: call.tool, arguments: call.arguments ?? {}, _meta: metaOf(call) },
    },
    { 'mcp-protocol-version': LEGACY, 'mcp-session-id': session },
  )

export const initialize = (id: string): Body =>
  bodyOf(
    {
      jsonrpc: '2.0',
      id,
      method: 'initialize',
      params: { protocolVersion: LEGACY, capabilities: {}, clientInfo: CLIENT },
    },
    {},
  )

export const initialized = (session: string): Body =>
  bodyOf(
    { jsonrpc: '2.0', method: 'notifications/initialized' },
    { 'mcp-protocol-version': LEGACY, 'mcp-session-id': session },
  )
