import { isEventStream } from '../http/index.ts'
import { EventReader } from './events.ts'
import { headerText, statelessHeaders } from './headers.ts'
import { isObject, parseMessages } from './message.ts'
import { HANDSHAKE_REVISION, STATELESS_REVISION } from './revisions.ts'

/** A message that tests a server: whether it speaks MCP, and which tools it has. */
export interface McpRequest {
  readonly method: 'initialize' | 'server/discover' | 'notifications/initialized' | 'tools/list'
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** The response to one of these requests. */
export interface McpAnswer {
  /** In the format of the revision; undefined for an error and for other responses. */
  readonly result: Readonly<Record<string, unknown>> | undefined
  /** JSON-RPC error code. */
  readonly errorCode: number | undefined
  /** The required field that a result lacks. */
  readonly lacks: string | undefined
}

const CLIENT = { name: 'extauth-check', version: '1' }
const ID = 1

const COMMON = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

/** The client, in each request of the stateless revisions. */
const ENVELOPE = {
  _meta: {
    'io.modelcontextprotocol/protocolVersion': STATELESS_REVISION,
    'io.modelcontextprotocol/clientInfo': CLIENT,
    'io.modelcontextprotocol/clientCapabilities': {},
  },
}

/** `initialize` of the latest revision with a handshake, which opens a session. */
export const INITIALIZE: McpRequest = {
  method: 'initialize',
  headers: COMMON,
  body: JSON.stringify({
    jsonrpc: '2.0',
    id: ID,
    method: 'initialize',
    params: { protocolVersion: HANDSHAKE_REVISION, capabilities: {}, clientInfo: CLIENT },
  }),
}

/** `server/discover` of the stateless revisions, which have no sessions. */
export const DISCOVER: McpRequest = {
  method: 'server/discover',
  headers: { ...COMMON, 'mcp-protocol-version': STATELESS_REVISION, 'mcp-method': 'server/discover' },
  body: JSON.stringify({
    jsonrpc: '2.0',
    id: ID,
    method: 'server/discover',
    params: ENVELOPE,
  }),
}

/** How a server wants requests after the first: the version it chose, and its session if it has one. */
export interface McpSession {
  readonly version: string
  readonly id: string | undefined
  readonly isStateless: boolean
}

/** Headers of each request in a session. */
export const sessionHeaders = ({ version, id }: McpSession): Record<string, string> => ({
  'mcp-protocol-version': headerText(version),
  ...(id === undefined ? {} : { 'mcp-session-id': id }),
})

/** The notification after `initialize`, which servers may require before other requests. */
export const initialized = (session: McpSession): McpRequest => ({
  method: 'notifications/initialized',
  headers: { ...COMMON, ...sessionHeaders(session) },
  body: JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }),
})

/** One page of the server's tools; the first without a cursor. */
export function listTools(session: McpSession, cursor: string | undefined): McpRequest {
  const params = {
    ...(session.isStateless ? ENVELOPE : {}),
    ...(cursor === undefined ? {} : { cursor }),
  }
  const own = session.isStateless ? statelessHeaders(session.version, 'tools/list', params) : sessionHeaders(session)
  return {
    method: 'tools/list',
    headers: { ...COMMON, ...own },
    body: JSON.stringify({ jsonrpc: '2.0', id: ID, method: 'tools/list', params }),
  }
}

/** Required fields of a result by the schema of its revision, which other servers lack. */
const WANTED: Readonly<Record<McpRequest['method'], Readonly<Record<string, (value: unknown) => boolean>>>> = {
  initialize: { protocolVersion: (value) => typeof value === 'string', capabilities: isObject },
  'server/discover': { supportedVersions: Array.isArray },
  'notifications/initialized': {},
  'tools/list': { tools: Array.isArray },
}

/**
 * Finds the response to a request above in a JSON or event stream body. Undefined without a JSON-RPC response to it.
 */
export function readAnswer(
  { method }: Pick<McpRequest, 'method'>,
  contentType: string,
  body: Buffer,
): McpAnswer | undefined {
  const texts = isEventStream(contentType) ? dataOf(body) : [body]
  for (const message of texts.flatMap((text) => parseMessages(text))) {
    if (message.kind !== 'response') continue
    const { id, result, error } = message
    if (id !== ID && id !== null) continue
    if (isObject(error))
      return {
        result: undefined,
        errorCode: typeof error['code'] === 'number' ? error['code'] : undefined,
        lacks: undefined,
      }
    const given = isObject(result) ? result : {}
    const lacks = Object.entries(WANTED[method]).find(([name, isIt]) => !isIt(given[name]))?.[0]
    return { result: lacks === undefined ? given : undefined, errorCode: undefined, lacks }
  }
  return undefined
}

/** The data of all events of a stream. */
function dataOf(body: Buffer): Uint8Array[] {
  const events = new EventReader(body.length)
  // An event without the final blank line counts as well: the stream has ended.
  return [...events.push(body), ...events.push(END)].filter(({ type }) => type === 'message').map(({ data }) => data)
}

const END = Buffer.from('\n\n')

/** Name and version of the server, on one line. */
export function serverOf({ result }: McpAnswer): string {
  const meta = result?.['_meta']
  const info = result?.['serverInfo'] ?? (isObject(meta) ? meta['io.modelcontextprotocol/serverInfo'] : undefined)
  if (!isObject(info)) return 'a server without a name'
  const { name, version } = info
  return `${textOf(name)} ${textOf(version)}`.trim() || 'a server without a name'
}

const textOf = (value: unknown): string =>
  typeof value === 'string' ? value.replace(/\p{Cc}/gu, ' ').slice(0, 100) : ''
