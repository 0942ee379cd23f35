import type { KubeObject, ResourceType } from '../../kube/index.ts'
import { canonicalJson } from '../../resources/index.ts'
import { type Plan, statusAction } from '../actions.ts'
import { changedConditions, type Condition, conditionsFrom, conditionsOf, type Finding } from '../conditions.ts'
import { eventOf } from '../events.ts'

/** What is known about a workload that the operator does not run (MCPServer, MCPServerEntry, VirtualMCPServer). */
export interface WorkloadSnapshot {
  readonly object: KubeObject
  readonly type: ResourceType
  /** What the rules say of its spec, as `validate` words it. */
  readonly problems: readonly string[]
  /** The configs that it refers to. */
  readonly references: readonly { readonly name: string; readonly is: 'valid' | 'invalid' | 'not_found' }[]
  readonly now: Date
}

/** Observed → wanted for one of them: conditions, and nothing else (kubernetes.md §3). Pure: no I/O, no clock. */
export function reconcileWorkload(snapshot: WorkloadSnapshot): Plan {
  const { object, type } = snapshot
  if (object.metadata.deletionTimestamp !== undefined) return { actions: [], events: [] }
  const before = conditionsOf(object)
  const { generation } = object.metadata
  const conditions = conditionsFrom(findingsOf(snapshot), before, generation, snapshot.now)
  const status = { ...(generation === undefined ? {} : { observedGeneration: generation }), conditions }
  const actions = canonicalJson(status) === canonicalJson(written(object)) ? [] : [statusAction(type, object, status)]
  // The other condition is why, and needs no event of its own.
  const told = changedConditions(conditions, before).filter(({ type: one }) => one === 'Ready')
  return { actions, events: told.map((condition) => eventOf(object, condition)) }
}

function findingsOf({ object, problems, references }: WorkloadSnapshot): Finding[] {
  const namespace = object.metadata.namespace ?? 'default'
  const lost = references.find(({ is }) => is === 'not_found')
  const broken = references.find(({ is }) => is === 'invalid')
  const referred: Finding =
    lost !== undefined
      ? no('ExternalAuthConfigNotFound', `there is no MCPExternalAuthConfig "${lost.name}" in namespace "${namespace}"`)
      : broken !== undefined
        ? no('ExternalAuthConfigInvalid', `MCPExternalAuthConfig "${broken.name}" is not valid`)
        : { ...VALIDATED, message: references.length === 0 ? 'it refers to none' : `valid: ${namesOf(references)}` }
  return [readyFinding(problems, referred), referred]
}

/** The first thing that is wrong with it. */
function readyFinding(problems: readonly string[], referred: Finding): Finding {
  const type = 'Ready'
  if (problems.length > 0) return { type, status: 'False', reason: 'SpecInvalid', message: problems.join('\n') }
  return referred.status === 'False'
    ? { ...referred, type }
    : { type, status: 'True', reason: 'WorkloadReady', message: 'it can be used' }
}

const VALIDATED = { type: 'ExternalAuthConfigValidated', status: 'True', reason: 'ExternalAuthConfigValid' } as const
const no = (reason: string, message: string): Finding => ({ ...VALIDATED, status: 'False', reason, message })
const namesOf = (references: WorkloadSnapshot['references']): string => references.map(({ name }) => name).join(', ')

const OURS = ['Ready', 'ExternalAuthConfigValidated']

/** What the status says now of what we would write. */
function written(object: KubeObject): {
  readonly observedGeneration?: unknown
  readonly conditions: readonly Condition[]
} {
  const { observedGeneration } = (object.status ?? {}) as { readonly observedGeneration?: unknown }
  const conditions = conditionsOf(object)
    .filter(({ type }) => OURS.includes(type))
    .toSorted((a, b) => OURS.indexOf(a.type) - OURS.indexOf(b.type))
  return { ...(observedGeneration === undefined ? {} : { observedGeneration }), conditions }
}
