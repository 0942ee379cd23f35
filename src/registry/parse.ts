import { setImmediate as breathe } from 'node:timers/promises'
import { isObject } from './document.ts'
import { repair, sentenceOf } from './repair.ts'
import { serverDetail, serverResponse, type ServerResponse } from './server-json.ts'
import { joinSkipped, NOTHING_SKIPPED, type Listed, type Reading, type Skipped } from './listing/snapshot.ts'

export { parseDocument } from './document.ts'

/** Entries validated before other requests get their turn: about a millisecond or two. */
const SLICE = 100

/** The entry and what it lost, or in a sentence what is wrong with it. */
function validate(item: unknown): { readonly response: ServerResponse; readonly lost: readonly string[] } | string {
  const isResponse = isObject(item) && Object.hasOwn(item, 'server')
  const schema = isResponse ? serverResponse : serverDetail
  const judge = (value: unknown) => schema.safeParse(value).error?.issues ?? []
  const [issue] = judge(item)
  const good = issue === undefined ? { item, lost: [] } : repair(item, judge)
  if (good === undefined) return issue === undefined ? 'not valid' : sentenceOf(issue)
  // What was read is served, byte for byte where JSON allows: the schema judges and changes nothing.
  const response = isResponse ? (good.item as ServerResponse) : { server: good.item as ServerResponse['server'] }
  return { response, lost: good.lost }
}

/**
 * Validates entries against the published schema, a slice at a time, so that the server keeps answering meanwhile. One
 * that is not valid is left out and told of; one whose optional members are odd loses these. `label` names the file or
 * page; `fallbackMs` dates entries that carry no date.
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
