import { SourceError } from './source-error.ts'

/** Content of a file or page before its entries are validated. */
export interface Document {
  readonly items: readonly unknown[]
  /** `metadata.nextCursor` of the list form. */
  readonly nextCursor: string | undefined
  /** Time of creation in the document, in milliseconds since the epoch (ToolHive's `meta.last_updated`). */
  readonly updatedMs: number | undefined
}

/** Whether a value is an object and not an array. */
export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * Parses one `server.json`, an array of them, the API's `{servers: […]}` or ToolHive's `{data: {servers: […]}}`
 * (decisions §7, Registry file). Throws `SourceError` for content that is not UTF-8 or JSON, or has no servers.
 */
export function parseDocument(bytes: Uint8Array): Document {
  let json: unknown
  try {
    json = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    throw new SourceError('not_json', 'the data is not UTF-8 encoded JSON')
  }
  const whole = { nextCursor: undefined, updatedMs: undefined }
  if (Array.isArray(json)) return { ...whole, items: json }
  if (!isObject(json)) throw noList()
  if (Object.hasOwn(json, 'servers')) return { ...whole, items: listIn(json), nextCursor: cursorIn(json['metadata']) }
  if (isObject(json['data'])) return { ...whole, items: listIn(json['data']), updatedMs: dateIn(json['meta']) }
  if (Object.hasOwn(json, 'server') || Object.hasOwn(json, 'name')) return { ...whole, items: [json] }
  throw noList()
}

const noList = () =>
  new SourceError('invalid', 'expected a server.json, an array of them, {servers: […]} or {data: {servers: […]}}')

function listIn({ servers }: Readonly<Record<string, unknown>>): readonly unknown[] {
  if (Array.isArray(servers)) return servers
  throw new SourceError('invalid', 'servers is not an array')
}

function cursorIn(metadata: unknown): string | undefined {
  const next = isObject(metadata) ? (metadata['nextCursor'] ?? metadata['next_cursor']) : undefined
  return typeof next === 'string' && next !== '' ? next : undefined
}

function dateIn(meta: unknown): number | undefined {
  const updated = isObject(meta) ? Date.parse(String(meta['last_updated'])) : Number.NaN
  return Number.isNaN(updated) ? undefined : updated
}
