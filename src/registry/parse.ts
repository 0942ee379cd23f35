import { setImmediate as breathe } from 'node:timers/promises'
import { serverDetail, serverResponse, type ServerResponse } from './server-json.ts'
import type { Listed } from './snapshot.ts'
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
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * Reads bytes as one `server.json`, an array of them, or the API's `{servers: […]}` (decisions §7, Registry file).
 * Throws `SourceError` for what is not UTF-8, not JSON or of another shape.
 */
export function parseDocument(bytes: Uint8Array): Document {
  let json: unknown
  try {
    json = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    throw new SourceError('not_json', 'the data is not UTF-8 encoded JSON')
  }
  if (Array.isArray(json)) return { items: json, nextCursor: undefined }
  if (!isObject(json)) throw new SourceError('invalid', 'expected a server.json, an array of them or {servers: […]}')
  if (!Object.hasOwn(json, 'servers')) return { items: [json], nextCursor: undefined }
  if (!Array.isArray(json['servers'])) throw new SourceError('invalid', 'servers is not an array')
  const metadata = json['metadata']
  const next = isObject(metadata) ? (metadata['nextCursor'] ?? metadata['next_cursor']) : undefined
  return { items: json['servers'], nextCursor: typeof next === 'string' && next !== '' ? next : undefined }
}

function validate(item: unknown, place: string): ServerResponse {
  const isResponse = isObject(item) && Object.hasOwn(item, 'server')
  const result = isResponse ? serverResponse.safeParse(item) : serverDetail.safeParse(item)
  if (!result.success) {
    const issue = result.error.issues[0]
    const path = issue?.path.map(String).join('.') ?? ''
    throw new SourceError('invalid', `${place}${path === '' ? '' : ` ${path}`}: ${issue?.message ?? 'not valid'}`)
  }
  // What was read is served, byte for byte where JSON allows: the schema judges and changes nothing.
  return isResponse ? (item as ServerResponse) : { server: item as ServerResponse['server'] }
}

/**
 * Validates entries against the published schema, a slice at a time, so that the server keeps answering meanwhile.
 * `label` names the file or page in messages; `fallbackMs` dates entries that carry no date. Throws `SourceError` at the
 * first entry that is not valid.
 */
export async function validateItems(items: readonly unknown[], label: string, fallbackMs: number): Promise<Listed[]> {
  if (items.length > MAX_ENTRIES) throw new SourceError('too_large', `${label}: more than ${MAX_ENTRIES} entries`)
  const listed: Listed[] = []
  for (const [index, item] of items.entries()) {
    if (index % SLICE === SLICE - 1) await breathe()
    listed.push({ response: validate(item, `${label}: entry ${index}`), fallbackMs })
  }
  return listed
}
