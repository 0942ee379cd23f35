/** What a server said in answer to `initialize` or `server/discover`. */
export interface McpAnswer {
  readonly result: Readonly<Record<string, unknown>> | undefined
  /** JSON-RPC error code. */
  readonly errorCode: number | undefined
}

const CLIENT = { name: 'extauth-check', version: '1' }
const MODERN = '2026-07-28'
const LEGACY = '2025-11-25'

const COMMON = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

/** `initialize` of the revision 2025-11-25, which opens a session. */
export const INITIALIZE = {
  method: 'initialize',
  headers: COMMON,
  body: JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion: LEGACY, capabilities: {}, clientInfo: CLIENT },
  }),
}

/** `server/discover` of the revision 2026-07-28, which has no sessions. */
export const DISCOVER = {
  method: 'server/discover',
  headers: { ...COMMON, 'mcp-protocol-version': MODERN, 'mcp-method': 'server/discover' },
  body: JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'server/discover',
    params: {
      _meta: {
        'io.modelcontextprotocol/protocolVersion': MODERN,
        'io.modelcontextprotocol/clientInfo': CLIENT,
        'io.modelcontextprotocol/clientCapabilities': {},
      },
    },
  }),
}

/** The JSON-RPC answer in a body of JSON or of an event stream; undefined when there is none. */
export function readAnswer(contentType: string, body: Buffer): McpAnswer | undefined {
  const text = body.toString('utf8')
  const texts = contentType.startsWith('text/event-stream') ? eventsOf(text) : [text]
  for (const each of texts) {
    const message = parsed(each)
    if (message === undefined || message['jsonrpc'] !== '2.0') continue
    const { result, error } = message
    if (isRecord(result)) return { result, errorCode: undefined }
    if (isRecord(error)) return { result: undefined, errorCode: typeof error['code'] === 'number' ? error['code'] : 0 }
  }
  return undefined
}

/** Name and version that the server gives itself, on one line. */
export function serverOf({ result }: McpAnswer): string {
  const meta = result?.['_meta']
  const info = result?.['serverInfo'] ?? (isRecord(meta) ? meta['io.modelcontextprotocol/serverInfo'] : undefined)
  if (!isRecord(info)) return 'a server without a name'
  const { name, version } = info
  return `${textOf(name)} ${textOf(version)}`.trim() || 'a server without a name'
}

const textOf = (value: unknown): string =>
  typeof value === 'string' ? value.replace(/\p{Cc}/gu, ' ').slice(0, 100) : ''

const eventsOf = (text: string): string[] =>
  text.split(/\r?\n\r?\n/).map((event) =>
    event
      .split(/\r?\n/)
      .filter((line) => line.startsWith('data:'))
      .map((line) => line.slice(5).trimStart())
      .join('\n'),
  )

function parsed(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
