import type { KubeObject } from '../kube/index.ts'
import type { ReferringKind } from './kinds.ts'
import { hasEnded, injectedConfig, type PodKeys, referencedConfigs } from './references.ts'

/** Who refers to which MCPExternalAuthConfig, kept current by changes, so that nothing is searched per look. */
export interface ReferenceIndex {
  /** Gives the keys (`namespace/name`) of the configs that gained or lost a reference. */
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
      const earlier = before === undefined ? [] : referencedConfigs(kind, before)
      const now = after === undefined ? [] : referencedConfigs(kind, after)
      for (const name of earlier) if (!now.includes(name)) drop(workloads, `${space}/${name}`, id)
      for (const name of now) {
        const key = `${space}/${name}`
        const known = workloads.get(key) ?? new Map<string, { kind: ReferringKind; name: string }>()
        workloads.set(key, known.set(id, { kind, name: object.metadata.name }))
      }
      const changed = [
        ...earlier.filter((name) => !now.includes(name)),
        ...now.filter((name) => !earlier.includes(name)),
      ]
      return changed.map((name) => `${space}/${name}`)
    },
    pod(before, after) {
      const object = after ?? before
      if (object === undefined) return []
      const space = spaceOf(object)
      const { name } = object.metadata
      const earlier = before === undefined ? undefined : injectedConfig(before, keys)
      // One that has ended holds nothing back.
      const now = after === undefined || hasEnded(after) ? undefined : injectedConfig(after, keys)
      if (earlier !== undefined && earlier !== now) drop(pods, `${space}/${earlier}`, name)
      if (now !== undefined) pods.set(`${space}/${now}`, (pods.get(`${space}/${now}`) ?? new Set<string>()).add(name))
      const changed = earlier === now ? [] : [earlier, now]
      return changed.flatMap((config) => (config === undefined ? [] : [`${space}/${config}`]))
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
