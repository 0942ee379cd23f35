import { createReadStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import type { World } from '../world/world.ts'
import type { Findings } from './findings.ts'
import type { Marks } from './marks.ts'

const PAGES = ['/metrics', '/config', '/cache', '/decisions', '/readiness', '/version']
const INSPECTOR = '/inspect/api'
const INSPECTED = ['/overview', '/cache', '/config', '/state']
/** Of the requests that the inspector keeps, so many with all that it shows of them. */
const MOST_REQUESTS = 100
const PATIENCE_MS = 60_000

/** How much was looked at: nothing found in nothing says nothing. */
export interface Searched {
  pages: number
  values: number
  /** Of all heaps together. */
  heapBytes: number
}

/** Looks for secrets in what can be asked of these processes. */
export async function searchPages(
  processes: readonly Pick<World['registry'], 'name' | 'adminUrl'>[],
  marks: Pick<Marks, 'find'>,
  findings: Pick<Findings, 'add'>,
  searched: Searched,
): Promise<void> {
  for (const { name, adminUrl } of processes) {
    const look = async (page: string): Promise<string> => {
      const response = await fetch(adminUrl + page, { signal: AbortSignal.timeout(PATIENCE_MS) }).catch(() => undefined)
      const text = response?.status === 200 ? await response.text().catch(() => '') : ''
      if (text === '') return ''
      searched.pages += 1
      for (const what of marks.find(text)) findings.add('leaked secret', `${what}, at ${page} of ${name}`)
      return text
    }
    for (const page of PAGES) await look(page)
    for (const page of INSPECTED) await look(INSPECTOR + page)
    for (const id of requestsIn(await look(`${INSPECTOR}/requests`)).slice(-MOST_REQUESTS))
      await look(`${INSPECTOR}/requests/${encodeURIComponent(id)}`)
  }
}

/** Looks for secrets in everything that is in Redis. */
export async function searchStore(
  world: Pick<World, 'store'>,
  marks: Pick<Marks, 'find'>,
  findings: Pick<Findings, 'add'>,
  searched: Searched,
): Promise<void> {
  for (const text of await world.store.dump()) {
    searched.values += 1
    for (const what of marks.find(text)) findings.add('leaked secret', `${what}, in Redis`)
  }
}

/** Longer ones are padding. */
const LONGEST_WORD = 64 * 1024
const WORD = /[\w-]/

/**
 * Looks for what callers brought in all that a process still holds after they have gone. Credentials that the proxy got for
 * them are there, as long as they are good: that is what its caches are for.
 */
export async function searchHeap(
  { name, writeHeap }: Pick<World['registry'], 'name' | 'writeHeap'>,
  marks: Pick<Marks, 'find'>,
  findings: Pick<Findings, 'add'>,
  searched: Searched,
  isKept: boolean,
): Promise<void> {
  const file = await writeHeap().catch((error: unknown) => findings.add('leaked secret', String(error)))
  if (file === undefined) return
  let rest = ''
  const found = new Set<string>()
  const look = (text: string): void => {
    for (const what of marks.find(text, 'caller')) found.add(what)
  }
  for await (const chunk of createReadStream(file, { encoding: 'latin1', highWaterMark: 1024 * 1024 })) {
    const text = rest + (chunk as string)
    searched.heapBytes += (chunk as string).length
    // A word that may go on in the next piece waits for it.
    let end = text.length
    while (end > 0 && text.length - end < LONGEST_WORD && WORD.test(text[end - 1] ?? '')) end -= 1
    rest = text.slice(end)
    look(text.slice(0, end))
  }
  look(rest)
  for (const what of found) findings.add('leaked secret', `${what}, in what ${name} still holds`)
  if (!isKept) await rm(file)
}

function requestsIn(text: string): readonly string[] {
  if (text === '') return []
  const list = JSON.parse(text) as readonly { id?: string }[] | { requests?: readonly { id?: string }[] }
  return ('requests' in list ? (list.requests ?? []) : (list as readonly { id?: string }[])).flatMap(
    ({ id }) => id ?? [],
  )
}
