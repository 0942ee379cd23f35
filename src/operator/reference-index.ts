import type { KubeObject } from '../kube/index.ts'
import type { ConfigKind, ReferringKind } from './kinds.ts'
import { hasEnded, injectedConfig, type PodKeys, referencesOf } from './references.ts'

/** The key of a referenced config: `kind/namespace/name`. */
export const configKey = (kind: ConfigKind, namespace: string, name: string): string => `${kind}/${namespace}/${name}`

/** Index of references to configs, updated incrementally, so that reconciliation needs no search. */
export interface ReferenceIndex {
  /** Returns the keys of the configs that gained or lost a reference. */
  workload(kind: ReferringKind, before: KubeObject | undefined, after: KubeObject | undefined): string[]
  /** The same for an injected pod. */
  pod(before: KubeObject | undefined, after: KubeObject | undefined): string[]
  workloadsOf(configKey: string): readonly { readonly kind: ReferringKind; readonly name: string }[]
  podsOf(configKey: string): readonly string[]
}

export function createReferenceIndex(keys: PodKeys): ReferenceIndex {
  const workloads = new Map<string, Map<string, { kind: ReferringKind; name: string }>>()
  const pods = new Map<string, Set<string>>()
  const spaceOf = ({ metadata }: KubeObject): string => metadata.namespace ?? 'default'

  return {
    workload(kind, before, after) {
      const object = after ?? before
      if (object === undefined) return []
      const space = spaceOf(object)
      const id = `${kind}/${object.metadata.name}`
      const keysOf = (one: KubeObject | undefined): string[] =>
        one === undefined ? [] : referencesOf(kind, one).map((found) => configKey(found.kind, space, found.name))
      const earlier = keysOf(before)
      const now = keysOf(after)
      for (const key of earlier) if (!now.includes(key)) drop(workloads, key, id)
      for (const key of now) {
        const known = workloads.get(key) ?? new Map<string, { kind: ReferringKind; name: string }>()
        workloads.set(key, known.set(id, { kind, name: object.metadata.name }))
      }
      return [...earlier.filter((key) => !now.includes(key)), ...now.filter((key) => !earlier.includes(key))]
    },
    pod(before, after) {
      const object = after ?? before
      if (object === undefined) return []
      const space = spaceOf(object)
      const { name } = object.metadata
      const keyOf = (config: string | undefined): string | undefined =>
        config === undefined ? undefined : configKey('MCPExternalAuthConfig', space, config)
      const earlier = before === undefined ? undefined : keyOf(injectedConfig(before, keys))
      // A pod that has terminated no longer counts as a reference.
      const now = after === undefined || hasEnded(after) ? undefined : keyOf(injectedConfig(after, keys))
      if (earlier !== undefined && earlier !== now) drop(pods, earlier, name)
      if (now !== undefined) pods.set(now, (pods.get(now) ?? new Set<string>()).add(name))
      return earlier === now ? [] : [earlier, now].filter((key) => key !== undefined)
    },
    workloadsOf: (key) => [...(workloads.get(key)?.values() ?? [])],
    podsOf: (key) => [...(pods.get(key) ?? [])].sort(),
  }
}

function drop(
  index: Map<string, { delete(id: string): boolean; readonly size: number }>,
  key: string,
  id: string,
): void {
  const known = index.get(key)
  known?.delete(id)
  if (known?.size === 0) index.delete(key)
}
