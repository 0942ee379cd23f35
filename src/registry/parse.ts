import { setImmediate as breathe } from 'node:timers/promises'
import { isObject } from './document.ts'
import { repair, sentenceOf } from './repair.ts'
import { serverDetail, serverResponse, type ServerResponse } from './server-json.ts'
import { joinSkipped, NOTHING_SKIPPED, type Listed, type Reading, type Skipped } from './listing/snapshot.ts'

export { parseDocument } from './document.ts'

/** Entries validated per slice, one or two milliseconds. */
const SLICE = 100

/** The entry with its removed fields, or its problem. */
function validate(item: unknown): { readonly response: ServerResponse; readonly lost: readonly string[] } | string {
  const isResponse = isObject(item) && Object.hasOwn(item, 'server')
  const schema = isResponse ? serverResponse : serverDetail
  const issuesOf = (value: unknown) => schema.safeParse(value).error?.issues ?? []
  const [issue] = issuesOf(item)
  const good = issue === undefined ? { item, lost: [] } : repair(item, issuesOf)
  if (good === undefined) return issue === undefined ? 'invalid' : sentenceOf(issue)
  // Entries are served as read, exactly if JSON allows: the schema validates without changes.
  const response = isResponse ? (good.item as ServerResponse) : { server: good.item as ServerResponse['server'] }
  return { response, lost: good.lost }
}

/**
 * Validates entries against the published schema in slices. Skips and reports invalid entries; removes invalid
 * optional fields. `label` is the file or page; `fallbackMs` dates entries without a date.
 */
export async function validateItems(items: readonly unknown[], label: string, fallbackMs: number): Promise<Reading> {
  const listed: Listed[] = []
  let skipped: Skipped = NOTHING_SKIPPED
  for (const [index, item] of items.entries()) {
    if (index % SLICE === SLICE - 1) await breathe()
    const found = validate(item)
    const at = `${label}: entry ${index}: `
    if (typeof found === 'string') skipped = joinSkipped(skipped, { count: 1, amended: 0, first: [at + found] })
    else {
      listed.push({ response: found.response, fallbackMs })
      if (found.lost.length > 0)
        skipped = joinSkipped(skipped, { count: 0, amended: 1, first: [at + found.lost.join('; ')] })
    }
  }
  return { listed, skipped }
}
