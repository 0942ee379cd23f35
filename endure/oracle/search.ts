import type { World } from '../world/world.ts'
import type { Findings } from './findings.ts'
import type { Marks } from './marks.ts'

const PAGES = ['/metrics', '/config', '/cache', '/decisions', '/readiness', '/version']
const INSPECTOR = '/inspect/api'
const INSPECTED = ['/overview', '/cache', '/config', '/state']
/** Of the requests that the inspector keeps, so many with all that it shows of them. */
const MOST_REQUESTS = 100
const PATIENCE_MS = 10_000

/** How much was looked at: nothing found in nothing says nothing. */
export interface Searched {
  pages: number
  values: number
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

function requestsIn(text: string): readonly string[] {
  if (text === '') return []
  const list = JSON.parse(text) as readonly { id?: string }[] | { requests?: readonly { id?: string }[] }
  return ('requests' in list ? (list.requests ?? []) : (list as readonly { id?: string }[])).flatMap(
    ({ id }) => id ?? [],
  )
}
