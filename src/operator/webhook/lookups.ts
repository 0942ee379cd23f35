import type { Clock } from '../../core/index.ts'
import type { KubeClient, KubeObject, ResourceType } from '../../kube/index.ts'

/** Milliseconds that something is known not to be there: pods that wait for it are tried again and again. */
const MISS_MS = 2_000
/** More are forgotten, the oldest first. */
const MOST_MISSES = 1_000

/** Finds one object that is not followed; `undefined` when there is none. */
export type Lookup = (type: ResourceType, namespace: string, name: string) => Promise<KubeObject | undefined>

/** Asks the API server for single objects; what it did not have is not asked for again at once. */
export function createLookup(client: KubeClient, clock: Clock): Lookup {
  const misses = new Map<string, number>()
  return async (type, namespace, name) => {
    const key = `${type.kind}/${namespace}/${name}`
    if ((misses.get(key) ?? 0) > clock.now()) return undefined
    misses.delete(key)
    // A list of one: the right to get is not needed.
    const found = (await client.list(type, { namespace, fieldSelector: `metadata.name=${name}` })).items
    const object = found.find(({ metadata }) => metadata.name === name && metadata.namespace === namespace)
    if (object !== undefined) return object
    misses.set(key, clock.now() + MISS_MS)
    for (const [oldest] of misses) {
      if (misses.size <= MOST_MISSES) break
      misses.delete(oldest)
    }
    return undefined
  }
}
