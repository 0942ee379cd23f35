import type { World } from '../world/world.ts'
import type { Findings } from './findings.ts'
import type { Marks } from './marks.ts'

const PAGES = ['/metrics', '/config', '/cache', '/decisions', '/readiness', '/inspect', '/inspect/requests']

/** Looks for secrets in what can be asked of the replicas, and in everything that is in Redis. */
export async function searchForMarks(world: World, marks: Marks, findings: Pick<Findings, 'add'>): Promise<void> {
  for (const { name, adminUrl } of world.replicas)
    for (const page of PAGES) {
      const text = await fetch(adminUrl + page, { signal: AbortSignal.timeout(10_000) }).then(
        (response) => response.text(),
        () => '',
      )
      for (const what of marks.find(text)) findings.add('leaked secret', `${what}, at ${page} of ${name}`)
    }
  for (const text of await world.store.dump())
    for (const what of marks.find(text)) findings.add('leaked secret', `${what}, in Redis`)
}
