import type { KubeObject, ResourceType } from '../../kube/index.ts'
import { type ConfigKind, SHARED_KINDS, type SharedKind } from '../kinds.ts'
import { canonicalJson } from '../../resources/index.ts'
import { type Plan, statusAction } from '../actions.ts'
import { identityFinding } from '../config/reconcile-config.ts'
import { changedConditions, type Condition, conditionsFrom, conditionsOf, type Finding } from '../conditions.ts'
import { eventOf } from '../events.ts'

/** The observed state of a workload that the operator does not run (MCPServer, MCPServerEntry, VirtualMCPServer). */
export interface WorkloadSnapshot {
  readonly object: KubeObject
  readonly type: ResourceType
  /** The problems of its spec, in the wording of `validate`. */
  readonly problems: readonly string[]
  /** The configs that it references. */
  readonly references: readonly {
    readonly kind: ConfigKind
    readonly name: string
    readonly is: 'valid' | 'invalid' | 'not_found'
  }[]
  /** Upstreams of its own authorization server without user identity; undefined without a server. */
  readonly synthesized?: readonly string[] | undefined
  readonly now: Date
}

/** Computes its conditions, and nothing else (kubernetes.md §3). Pure: no I/O, no clock. */
export function reconcileWorkload(snapshot: WorkloadSnapshot): Plan {
  const { object, type } = snapshot
  if (object.metadata.deletionTimestamp !== undefined) return { actions: [], events: [] }
  const before = conditionsOf(object)
  const { generation } = object.metadata
  const conditions = conditionsFrom(findingsOf(snapshot), before, generation, snapshot.now)
  const status = { ...(generation === undefined ? {} : { observedGeneration: generation }), conditions }
  const actions = canonicalJson(status) === canonicalJson(written(object)) ? [] : [statusAction(type, object, status)]
  // The other condition is the cause, and needs no event of its own.
  const ready = changedConditions(conditions, before).filter(({ type: one }) => one === 'Ready')
  return { actions, events: ready.map((condition) => eventOf(object, condition, before)) }
}

function findingsOf({ object, problems, references, synthesized }: WorkloadSnapshot): Finding[] {
  const namespace = object.metadata.namespace ?? 'default'
  const findingOf = (kind: ConfigKind, words: Words): Finding => {
    const own = references.filter((one) => one.kind === kind)
    const lost = own.find(({ is }) => is === 'not_found')
    const broken = own.find(({ is }) => is === 'invalid')
    const { type, about } = words
    const no = (reason: string, message: string): Finding => ({ type, status: 'False', reason, message })
    if (lost !== undefined)
      return no(`${about}NotFound`, `there is no ${kind} "${lost.name}" in namespace "${namespace}"`)
    if (broken !== undefined) return no(`${about}Invalid`, `${kind} "${broken.name}" is not valid`)
    const names = own.map(({ name }) => name).join(', ')
    const message = own.length === 0 ? 'no references' : `valid: ${names}`
    return { type, status: 'True', reason: `${about}Valid`, message }
  }
  const referred = findingOf('MCPExternalAuthConfig', EXTERNAL_AUTH)
  const shared = SHARED_KINDS.filter((kind) => references.some((one) => one.kind === kind)).map((kind) =>
    findingOf(kind, SHARED[kind]),
  )
  const identity = synthesized === undefined ? [] : [identityFinding(synthesized)]
  return [readyFinding(problems, [referred, ...shared]), referred, ...shared, ...identity]
}

/** Names of the conditions and reasons of a reference. */
interface Words {
  readonly type: string
  readonly about: string
}
const EXTERNAL_AUTH: Words = { type: 'ExternalAuthConfigValidated', about: 'ExternalAuthConfig' }
const SHARED: Readonly<Record<SharedKind, Words>> = {
  MCPOIDCConfig: { type: 'OIDCConfigRefValidated', about: 'OIDCConfigRef' },
  MCPTelemetryConfig: { type: 'TelemetryConfigRefValidated', about: 'TelemetryConfigRef' },
  MCPToolConfig: { type: 'ToolConfigRefValidated', about: 'ToolConfigRef' },
}

/** The first problem. */
function readyFinding(problems: readonly string[], references: readonly Finding[]): Finding {
  const type = 'Ready'
  if (problems.length > 0) return { type, status: 'False', reason: 'SpecInvalid', message: problems.join('\n') }
  const broken = references.find(({ status }) => status === 'False')
  return broken === undefined
    ? { type, status: 'True', reason: 'WorkloadReady', message: 'the workload can be used' }
    : { ...broken, type }
}

const CONDITION_TYPES = [
  'Ready',
  EXTERNAL_AUTH.type,
  ...SHARED_KINDS.map((kind) => SHARED[kind].type),
  'IdentitySynthesized',
]

/** The fields of the current status that the operator would write. */
function written(object: KubeObject): {
  readonly observedGeneration?: unknown
  readonly conditions: readonly Condition[]
} {
  const { observedGeneration } = (object.status ?? {}) as { readonly observedGeneration?: unknown }
  const conditions = conditionsOf(object)
    .filter(({ type }) => CONDITION_TYPES.includes(type))
    .toSorted((a, b) => CONDITION_TYPES.indexOf(a.type) - CONDITION_TYPES.indexOf(b.type))
  return { ...(observedGeneration === undefined ? {} : { observedGeneration }), conditions }
}
