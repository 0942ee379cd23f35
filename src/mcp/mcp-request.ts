import { isEventStream } from '../http/index.ts'
import { EventReader } from './events.ts'
import { isObject, parseMessages } from './message.ts'
import { HANDSHAKE_REVISION, STATELESS_REVISION } from './revisions.ts'

/** A request that is made to see whether a server speaks MCP. */
export interface McpRequest {
  readonly method: 'initialize' | 'server/discover'
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** What a server said in answer to `initialize` or `server/discover`. */
export interface McpAnswer {
  /** As the revision has it; undefined for an error, and for what is no answer to this request. */
  readonly result: Readonly<Record<string, unknown>> | undefined
  /** JSON-RPC error code. */
  readonly errorCode: number | undefined
  /** What a result would have to have, where it lacks that. */
  readonly lacks: string | undefined
}

const CLIENT = { name: 'extauth-check', version: '1' }
const ID = 1

const COMMON = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

/** `initialize` of the newest revision with a handshake, which opens a session. */
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

/** `server/discover` of the stateless era, which has no sessions. */
export const DISCOVER: McpRequest = {
  method: 'server/discover',
  headers: { ...COMMON, 'mcp-protocol-version': STATELESS_REVISION, 'mcp-method': 'server/discover' },
  body: JSON.stringify({
    jsonrpc: '2.0',
    id: ID,
    method: 'server/discover',
    params: {
      _meta: {
        'io.modelcontextprotocol/protocolVersion': STATELESS_REVISION,
        'io.modelcontextprotocol/clientInfo': CLIENT,
        'io.modelcontextprotocol/clientCapabilities': {},
      },
    },
  }),
}

/** What a result has by the schema of its revision, and what answers anything with an object has not. */
const WANTED: Readonly<Record<McpRequest['method'], Readonly<Record<string, (value: unknown) => boolean>>>> = {
  initialize: { protocolVersion: (value) => typeof value === 'string', capabilities: isObject },
  'server/discover': { supportedVersions: Array.isArray },
}

/**
 * The answer to one of the requests above in a body of JSON or of an event stream. Undefined where no message is the
 * JSON-RPC response to it.
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

/** The data of the events of a whole stream. */
function dataOf(body: Buffer): Uint8Array[] {
  const events = new EventReader(body.length)
  // What a stream ends in without a blank line counts as well: it is all that will come.
  return [...events.push(body), ...events.push(END)].filter(({ type }) => type === 'message').map(({ data }) => data)
}

const END = Buffer.from('\n\n')

/** Name and version that the server gives itself, on one line. */
export function serverOf({ result }: McpAnswer): string {
  const meta = result?.['_meta']
  const info = result?.['serverInfo'] ?? (isObject(meta) ? meta['io.modelcontextprotocol/serverInfo'] : undefined)
  if (!isObject(info)) return 'a server without a name'
  const { name, version } = info
  return `${textOf(name)} ${textOf(version)}`.trim() || 'a server without a name'
}

const textOf = (value: unknown): string =>
  typeof value === 'string' ? value.replace(/\p{Cc}/gu, ' ').slice(0, 100) : ''
