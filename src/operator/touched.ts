import type { KubeObject, ResourceType } from '../kube/index.ts'
import { conditionsOf } from './conditions.ts'
import { CONFIG_KINDS, type ConfigKind, REFERRING_KINDS, type ReferringKind } from './kinds.ts'
import { hasSameSpec } from './observed.ts'
import { configKey, type ReferenceIndex } from './reference-index.ts'

/** Kinds that are reconciled. */
export type ReconciledKind = ConfigKind | ReferringKind

/** The queue key of an object. */
export const taskOf = (kind: ReconciledKind, namespace: string, name: string): string => `${kind}/${namespace}/${name}`

/** Parses a queue key. */
export function partsOf(key: string): {
  readonly kind: ReconciledKind
  readonly namespace: string
  readonly name: string
} {
  const [kind = '', namespace = '', name = ''] = key.split('/')
  return { kind: isReferring(kind) || isConfig(kind) ? kind : 'MCPExternalAuthConfig', namespace, name }
}

/** Queue keys of the objects affected by a change. */
export function touchedBy(
  type: ResourceType,
  before: KubeObject | undefined,
  after: KubeObject | undefined,
  references: ReferenceIndex,
): string[] {
  const object = after ?? before
  if (object === undefined) return []
  const { namespace = 'default', name } = object.metadata
  if (isConfig(type.kind)) {
    // Workload conditions and running pods depend on its spec.
    const isSame = after !== undefined && hasSameSpec(after, before)
    const users = isSame ? [] : references.workloadsOf(configKey(type.kind, namespace, name))
    return [taskOf(type.kind, namespace, name), ...users.map((user) => taskOf(user.kind, namespace, user.name))]
  }
  if (isReferring(type.kind)) {
    const changed = references.workload(type.kind, before, after)
    // For objects of other controllers only the conditions are written.
    const isTheirs = type.kind !== 'MCPRemoteProxy' && after !== undefined && hasSameSpec(after, before)
    const isQuiet = isTheirs && changed.length === 0 && hasSameConditions(after, before)
    return [...changed, ...(isQuiet ? [] : [taskOf(type.kind, namespace, name)])]
  }
  if (type.kind === 'Pod') return references.pod(before, after)
  // Includes former owners: the reference itself may have been removed.
  const owners = [before, after].flatMap((one) => one?.metadata.ownerReferences ?? [])
  return owners.flatMap(({ controller, kind, name: owner }) =>
    controller === true && (kind === 'MCPRemoteProxy' || kind === 'MCPExternalAuthConfig')
      ? [taskOf(kind, namespace, owner)]
      : [],
  )
}

const hasSameConditions = (after: KubeObject, before: KubeObject | undefined): boolean =>
  before !== undefined && JSON.stringify(conditionsOf(after)) === JSON.stringify(conditionsOf(before))

const isReferring = (kind: string): kind is ReferringKind => REFERRING_KINDS.some((one) => one === kind)

const isConfig = (kind: string): kind is ConfigKind => CONFIG_KINDS.some((one) => one === kind)
