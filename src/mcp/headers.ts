import { isObject, type Params } from './message.ts'

/** Parameter repeated in `Mcp-Name`, by method (MCP 2026-07-28, streamable HTTP: standard request headers). */
const NAME_SOURCES: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
}

/** Value of `Mcp-Name` of a request; undefined if it has none. */
export function namedIn(method: string, params: Params): string | undefined {
  const source = Object.hasOwn(NAME_SOURCES, method) ? NAME_SOURCES[method] : undefined
  const name = source === undefined ? undefined : params[source]
  return typeof name === 'string' ? name : undefined
}

/** Headers that repeat fields of a stateless request's body, for routing. */
export function statelessHeaders(version: string, method: string, params: Params): Record<string, string> {
  const name = namedIn(method, params)
  return {
    'mcp-protocol-version': headerText(version),
    'mcp-method': headerText(method),
    ...(name === undefined ? {} : { 'mcp-name': headerText(name) }),
  }
}

/** Encodes a string as a header value: unchanged if plain ASCII, else base64 as the protocol specifies. */
export const headerText = (text: string): string =>
  /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !/^=\?base64\?.*\?=$/.test(text)
    ? text
    : `=?base64?${btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCodePoint(byte)).join(''))}?=`

/** Decodes such a header value; undefined for invalid base64 or UTF-8. */
export function textOfHeader(value: string): string | undefined {
  const coded = /^=\?base64\?(.*)\?=$/.exec(value)?.[1]
  if (coded === undefined) return value
  try {
    return utf8.decode(Uint8Array.from(atob(coded), (character) => character.codePointAt(0) ?? 0))
  } catch {
    return undefined
  }
}

const utf8 = /* @__PURE__ */ new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** A tool parameter that is also sent as a header. */
interface Declared {
  readonly path: readonly string[]
  /** `Mcp-Param-…`, lower case. */
  readonly header: string
}

const MAX_TOOLS = 10_000
const MAX_DEPTH = 32
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}$/
const MIRRORED_TYPES: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean'])

/**
 * Parameters of a server's tools to send as headers (`x-mcp-header` in input schemas, MCP 2026-07-28). A client on
 * standard input has no headers, so the bridge learns them from tool lists.
 */
export class ToolParameters {
  readonly #byTool = new Map<string, readonly Declared[]>()

  /** Reads a response to `tools/list`. */
  learn(result: unknown): void {
    const tools = isObject(result) ? result['tools'] : undefined
    if (!Array.isArray(tools)) return
    for (const tool of tools) {
      if (!isObject(tool) || typeof tool['name'] !== 'string') continue
      const declared = declaredIn(tool['inputSchema'])
      this.#byTool.delete(tool['name'])
      if (declared.length > 0) this.#byTool.set(tool['name'], declared)
      if (this.#byTool.size > MAX_TOOLS) this.#byTool.clear()
    }
  }

  /** The headers of one `tools/call`. */
  headers({ name, arguments: given }: Params): Record<string, string> {
    return typeof name === 'string' ? headersOf(this.#byTool.get(name) ?? [], given) : {}
  }
}

/** The headers of one call of a tool, by its input schema. */
export const parameterHeaders = (inputSchema: unknown, given: unknown): Record<string, string> =>
  headersOf(declaredIn(inputSchema), given)

function headersOf(declared: readonly Declared[], given: unknown): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const { path, header } of declared) {
    const value = path.reduce<unknown>(
      (node, key) => (isObject(node) && Object.hasOwn(node, key) ? node[key] : undefined),
      given,
    )
    if (typeof value === 'string') headers[header] = headerText(value)
    else if (typeof value === 'boolean' || Number.isSafeInteger(value)) headers[header] = String(value)
  }
  return headers
}

/** None if two parameters have the same header. */
function declaredIn(inputSchema: unknown): readonly Declared[] {
  const declared: Declared[] = []
  collect(inputSchema, [], declared)
  return new Set(declared.map(({ header }) => header)).size === declared.length ? declared : []
}

/** Only a chain of `properties` leads to a parameter that every call can have. */
function collect(schema: unknown, path: readonly string[], declared: Declared[]): void {
  if (!isObject(schema) || path.length > MAX_DEPTH) return
  const { 'x-mcp-header': name, type, properties } = schema
  if (path.length > 0 && typeof name === 'string' && TOKEN.test(name) && MIRRORED_TYPES.has(type))
    declared.push({ path, header: `mcp-param-${name.toLowerCase()}` })
  if (!isObject(properties)) return
  for (const [key, child] of Object.entries(properties)) collect(child, [...path, key], declared)
}
