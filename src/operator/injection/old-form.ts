import type { KubeObject } from '../../kube/index.ts'
import type { Keys } from '../key-refs.ts'
import { CONTAINER } from './request.ts'

interface Source {
  readonly name?: string
  readonly secretName?: string
  readonly items?: readonly { readonly key: string }[]
}
interface Volume {
  readonly secret?: Source
  readonly projected?: { readonly sources?: readonly { readonly secret?: Source }[] }
}

/**
 * Whether an injected pod differs from a newly created one: its proxy has another image, or lacks a key of a Secret
 * that the config references now. Mounts are fixed at creation.
 */
export function isOldForm(pod: KubeObject, now: { readonly image: string; readonly secretKeys: Keys }): boolean {
  const { initContainers = [], volumes = [] } = (pod.spec ?? {}) as {
    initContainers?: readonly { readonly name: string; readonly image?: string }[]
    volumes?: readonly Volume[]
  }
  const sidecar = initContainers.find(({ name }) => name === CONTAINER)
  if (sidecar?.image !== now.image) return true
  const sources = [
    ...volumes.map(({ secret }) => secret),
    ...volumes.flatMap(({ projected }) => (projected?.sources ?? []).map(({ secret }) => secret)),
  ]
  const mounted = new Set(
    sources.flatMap((source) => (source?.items ?? []).map(({ key }) => `${source?.secretName ?? source?.name}/${key}`)),
  )
  return [...now.secretKeys].some(([name, keys]) => [...keys].some((key) => !mounted.has(`${name}/${key}`)))
}
