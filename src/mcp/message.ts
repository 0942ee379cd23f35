/** ID of a JSON-RPC request (JSON-RPC 2.0 §4). */
export type Id = string | number

/** A JSON-RPC message with its bytes, which contain no line break. */
export type Message =
  | {
      readonly kind: 'request'
      readonly bytes: Buffer
      readonly id: Id
      readonly method: string
      readonly params: Params
    }
  | { readonly kind: 'notification'; readonly bytes: Buffer; readonly method: string; readonly params: Params }
  | {
      readonly kind: 'response'
      readonly bytes: Buffer
      /** Null if the other side could not determine the request. */
      readonly id: Id | null
      readonly result: unknown
      readonly error: unknown
    }

export type Request = Extract<Message, { kind: 'request' }>
export type Notification = Extract<Message, { kind: 'notification' }>
export type Response = Extract<Message, { kind: 'response' }>

/** Named parameters; may be empty. */
export type Params = Readonly<Record<string, unknown>>

/** Bytes that are not a message (JSON-RPC 2.0 §5.1), with the `id` if readable. */
export interface Malformed {
  readonly kind: 'malformed'
  readonly code: typeof PARSE_ERROR | typeof INVALID_REQUEST
  readonly why: string
  readonly id: Id | null
  /** It does not declare JSON-RPC 2.0. */
  readonly isOther?: boolean
}

const PARSE_ERROR = -32_700
export const INVALID_REQUEST = -32_600
/** Code of connection errors (JSON-RPC 2.0 §5.1: reserved for implementations). */
export const CONNECTION_ERROR = -32_000

/** Locations of the revision and of the client's capabilities in a request (MCP 2026-07-28). */
const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion'
export const STATELESS_CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'

const utf8 = /* @__PURE__ */ new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Parses bytes as one message, a batch (2025-03-26), or malformed input. */
export function parseMessages(given: Uint8Array): readonly (Message | Malformed)[] {
  const bytes = bufferOf(given)
  const json = jsonIn(bytes)
  if (json === undefined) return [notJson()]
  const { value } = json
  if (!Array.isArray(value)) return [messageOf(value, bytes)]
  if (value.length === 0) return [malformed(INVALID_REQUEST, 'an empty batch')]
  return value.map((one) => messageOf(one, Buffer.from(JSON.stringify(one))))
}

/** Parses bytes as one message; a batch is malformed. */
export function parseMessage(given: Uint8Array): Message | Malformed {
  const bytes = bufferOf(given)
  const json = jsonIn(bytes)
  return json === undefined ? notJson() : messageOf(json.value, bytes)
}

function jsonIn(bytes: Buffer): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(utf8.decode(bytes)) }
  } catch {
    return undefined
  }
}

const notJson = (): Malformed => malformed(PARSE_ERROR, 'not JSON in UTF-8')

/** The same bytes without a copy. */
const bufferOf = (bytes: Uint8Array): Buffer =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** Whether the bytes are a batch; no other JSON-RPC starts like one. */
export const isBatch = (bytes: Uint8Array): boolean =>
  bufferOf(bytes).toString('latin1', 0, 64).trimStart().startsWith('[')

/** Classifies a parsed value with its bytes. */
export function messageOf(value: unknown, bytes: Buffer): Message | Malformed {
  if (!isObject(value)) return malformed(INVALID_REQUEST, 'not a JSON-RPC message')
  const { jsonrpc, id, method, params } = value
  const known = isId(id) ? id : null
  // In a different protocol, the ID has a different meaning (JSON-RPC 2.0 §5: null then); without a version, it is an
  // omission.
  if (jsonrpc !== '2.0')
    return {
      ...malformed(INVALID_REQUEST, 'not a JSON-RPC 2.0 message', jsonrpc === undefined ? known : null),
      isOther: true,
    }
  const line = withoutBreaks(bytes)
  if (typeof method === 'string') {
    const given = isObject(params) ? params : {}
    if (id === undefined) return { kind: 'notification', bytes: line, method, params: given }
    if (known === null) return malformed(INVALID_REQUEST, 'the id must be a string or a number')
    return { kind: 'request', bytes: line, id: known, method, params: given }
  }
  const { result, error } = value
  if ((result === undefined) === (error === undefined) || (known === null && error === undefined))
    return malformed(INVALID_REQUEST, 'neither a request nor a response', known)
  return { kind: 'response', bytes: line, id: known, result, error }
}

const malformed = (code: Malformed['code'], why: string, id: Id | null = null): Malformed => ({
  kind: 'malformed',
  code,
  why,
  id,
})

/** In JSON, line breaks occur only between tokens, where spaces are equivalent. */
function withoutBreaks(bytes: Buffer): Buffer {
  if (!bytes.includes(0x0a) && !bytes.includes(0x0d)) return bytes
  const copy = Buffer.from(bytes)
  for (let at = 0; at < copy.length; at++) if (copy[at] === 0x0a || copy[at] === 0x0d) copy[at] = 0x20
  return copy
}

export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const isId = (value: unknown): value is Id => typeof value === 'string' || typeof value === 'number'

/** Distinguishes 1 and "1". */
export const keyOf = (id: Id): string => JSON.stringify(id)

/** The revision in a stateless request; undefined for requests after a handshake. */
export function statelessVersionOf(params: Params): string | undefined {
  const version = metaIn(params, VERSION_KEY)
  return typeof version === 'string' ? version : undefined
}

/** The client's capabilities in a stateless request, unchecked; undefined without any. */
export const statelessCapabilitiesOf = (params: Params): unknown => metaIn(params, STATELESS_CAPABILITIES)

function metaIn({ _meta: meta }: Params, key: string): unknown {
  return isObject(meta) ? meta[key] : undefined
}

/** A JSON-RPC error response as a line, without newline. */
export const errorResponse = (
  id: Id | null,
  error: { readonly code: number; readonly message: string; readonly data?: unknown },
): Buffer => Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, error }))
