import type { KubeObject, ResourceType } from '../kube/index.ts'
import { REFERRING_KINDS, type ReferringKind } from './kinds.ts'
import { hasSameSpec } from './observed.ts'
import type { ReferenceIndex } from './reference-index.ts'

/** Beginnings of the keys of the queue; `namespace/name` follows. */
export const CONFIG = 'config:'
export const PROXY = 'proxy:'

/** Keys of what has to be looked at because an object changed. */
export function touchedBy(
  type: ResourceType,
  before: KubeObject | undefined,
  after: KubeObject | undefined,
  references: ReferenceIndex,
): string[] {
  const object = after ?? before
  if (object === undefined) return []
  const { namespace = 'default', name } = object.metadata
  const key = `${namespace}/${name}`
  if (type.kind === 'MCPExternalAuthConfig') {
    // What pods run comes from its spec.
    const isSame = after !== undefined && hasSameSpec(after, before)
    const proxies = isSame ? [] : references.workloadsOf(key).filter(({ kind }) => kind === 'MCPRemoteProxy')
    return [`${CONFIG}${key}`, ...proxies.map((proxy) => `${PROXY}${namespace}/${proxy.name}`)]
  }
  if (isReferring(type.kind)) {
    const configs = references.workload(type.kind, before, after).map((config) => `${CONFIG}${config}`)
    return type.kind === 'MCPRemoteProxy' ? [...configs, `${PROXY}${key}`] : configs
  }
  if (type.kind === 'Pod') return references.pod(before, after).map((config) => `${CONFIG}${config}`)
  // Also of whom it was: the reference may be what was taken away.
  const owners = [before, after].flatMap((one) => one?.metadata.ownerReferences ?? [])
  return owners.flatMap((owner) => {
    if (owner.controller !== true) return []
    if (owner.kind === 'MCPRemoteProxy') return [`${PROXY}${namespace}/${owner.name}`]
    return owner.kind === 'MCPExternalAuthConfig' ? [`${CONFIG}${namespace}/${owner.name}`] : []
  })
}

const isReferring = (kind: string): kind is ReferringKind => REFERRING_KINDS.some((one) => one === kind)
