import type { Clock } from '../../core/index.ts'
import type { KubeClient, KubeObject, ResourceType } from '../../kube/index.ts'

/** Milliseconds to cache a negative result: pods that wait for an object are retried frequently. */
const MISS_MS = 2_000
/** Maximum negative results; the oldest are dropped. */
const MOST_MISSES = 1_000

/** Reads one object that is not watched; `undefined` if it does not exist. */
export type Lookup = (type: ResourceType, namespace: string, name: string) => Promise<KubeObject | undefined>

/** Reads single objects from the API server; negative results are cached. */
export function createLookup(client: KubeClient, clock: Clock): Lookup {
  const misses = new Map<string, number>()
  return async (type, namespace, name) => {
    const key = `${type.kind}/${namespace}/${name}`
    if ((misses.get(key) ?? 0) > clock.now()) return undefined
    misses.delete(key)
    // A list of one: permission to get is not needed.
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
