import { setImmediate as breathe } from 'node:timers/promises'
import { isObject } from './document.ts'
import { serverDetail, serverResponse, type ServerResponse } from './server-json.ts'
import { joinSkipped, NOTHING_SKIPPED, type Listed, type Reading, type Skipped } from './snapshot.ts'
import { SourceError } from './source-error.ts'

export { parseDocument } from './document.ts'

/** Entries of one registry, all files or pages together. */
export const MAX_ENTRIES = 50_000
/** Entries validated before other requests get their turn: about a millisecond or two. */
const SLICE = 100

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
