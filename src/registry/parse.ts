import { setImmediate as breathe } from 'node:timers/promises'
import { serverDetail, serverResponse, type ServerResponse } from './server-json.ts'
import { joinSkipped, NOTHING_SKIPPED, type Listed, type Reading, type Skipped } from './snapshot.ts'
import { SourceError } from './source-error.ts'

/** Entries of one registry, all files or pages together. */
export const MAX_ENTRIES = 50_000
/** Entries validated before other requests get their turn: about a millisecond or two. */
const SLICE = 100

/** What one file or page holds, before its entries are looked at. */
export interface Document {
  readonly items: readonly unknown[]
  /** `metadata.nextCursor` of the list form. */
  readonly nextCursor: string | undefined
  /** When it says that it was made, in milliseconds since the epoch (ToolHive's `meta.last_updated`). */
  readonly updatedMs: number | undefined
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * Reads bytes as one `server.json`, an array of them, the API's `{servers: […]}` or ToolHive's `{data: {servers: […]}}`
 * (decisions §7, Registry file). Throws `SourceError` for what is not UTF-8, not JSON or holds no servers.
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
  const said = isObject(meta) ? Date.parse(String(meta['last_updated'])) : Number.NaN
  return Number.isNaN(said) ? undefined : said
}

/** The entry, or in a sentence what is wrong with it. */
function validate(item: unknown): ServerResponse | string {
  const isResponse = isObject(item) && Object.hasOwn(item, 'server')
  const result = isResponse ? serverResponse.safeParse(item) : serverDetail.safeParse(item)
  if (!result.success) {
    const issue = result.error.issues[0]
    const path = issue?.path.map(String).join('.') ?? ''
    return `${path}${path === '' ? '' : ': '}${issue?.message ?? 'not valid'}`
  }
  // What was read is served, byte for byte where JSON allows: the schema judges and changes nothing.
  return isResponse ? (item as ServerResponse) : { server: item as ServerResponse['server'] }
}

/**
 * Validates entries against the published schema, a slice at a time, so that the server keeps answering meanwhile. One
 * that is not valid is left out and told of. `label` names the file or page; `fallbackMs` dates entries that carry no
 * date. Throws `SourceError` for too many entries.
 */
export async function validateItems(items: readonly unknown[], label: string, fallbackMs: number): Promise<Reading> {
  if (items.length > MAX_ENTRIES) throw new SourceError('too_large', `${label}: more than ${MAX_ENTRIES} entries`)
  const listed: Listed[] = []
  let skipped: Skipped = NOTHING_SKIPPED
  for (const [index, item] of items.entries()) {
    if (index % SLICE === SLICE - 1) await breathe()
    const response = validate(item)
    if (typeof response !== 'string') listed.push({ response, fallbackMs })
    else skipped = joinSkipped(skipped, { count: 1, first: [`${label}: entry ${index}: ${response}`] })
  }
  return { listed, skipped }
}
