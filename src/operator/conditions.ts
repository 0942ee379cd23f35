import type { KubeObject } from '../kube/index.ts'

/** One condition of a status, as the API conventions have it. */
export interface Condition {
  readonly type: string
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason: string
  readonly message: string
  readonly lastTransitionTime: string
  readonly observedGeneration?: number
}

/** What is found now, before it is compared with what the status says. */
export type Finding = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>

/** Bound of the specification for `message`. */
const MAX_MESSAGE = 32_768

/**
 * The conditions to write: `lastTransitionTime` moves only where the status of a condition changes; those of other types
 * stay with whoever wrote them (server-side apply owns ours alone).
 */
export function conditionsFrom(
  findings: readonly Finding[],
  before: readonly Condition[],
  generation: number | undefined,
  now: Date,
): Condition[] {
  return findings.map((finding) => {
    const earlier = before.find(({ type }) => type === finding.type)
    const isSame = earlier?.status === finding.status
    return {
      type: finding.type,
      status: finding.status,
      reason: finding.reason,
      message: cut(finding.message),
      lastTransitionTime: isSame ? earlier.lastTransitionTime : secondsOf(now),
      ...(generation === undefined ? {} : { observedGeneration: generation }),
    }
  })
}

/** The conditions whose status or reason is another than before: each is worth one event. A quiet beginning is none. */
export const changedConditions = (after: readonly Condition[], before: readonly Condition[]): Condition[] =>
  after.filter((condition) => {
    const earlier = before.find(({ type }) => type === condition.type)
    if (earlier === undefined) return condition.status !== 'Unknown' && !isQuiet(condition)
    return earlier.status !== condition.status || earlier.reason !== condition.reason
  })

/** Conditions that are well when they are False. */
const GOOD_WHEN_FALSE: ReadonlySet<string> = new Set([
  'DeletionBlocked',
  'IdentitySynthesized',
  'SessionStorageWarning',
])

/** A condition that says that all is as it should be, because something is not there. */
const isQuiet = ({ type, status }: Condition): boolean => GOOD_WHEN_FALSE.has(bare(type)) && status === 'False'

/** Whether a person need not do anything about it. */
export const isGood = (condition: Condition): boolean =>
  condition.status === 'Unknown' || (condition.status === 'True') !== GOOD_WHEN_FALSE.has(bare(condition.type))

/** Reasons of an object on its way to what is wanted. */
const PROGRESS: ReadonlySet<string> = new Set(['DeploymentPending', 'RollingOut', 'ReplicasUnavailable'])

/** Reasons that each change of a configuration, and each creation, brings for a while. */
const ORDINARY: ReadonlySet<string> = new Set(['ConfigurationPending', 'NoReadyPods'])

/** Whether a condition needs attention: an object that was never ready is on its way through these reasons. */
export const isWarning = (condition: Condition, before: readonly Condition[]): boolean => {
  const earlier = before.find(({ type }) => type === condition.type)
  return (
    !isGood(condition) &&
    !ORDINARY.has(condition.reason) &&
    !(PROGRESS.has(condition.reason) && earlier?.status !== 'True')
  )
}

const bare = (type: string): string => type.slice(type.indexOf('/') + 1)

/** `2026-11-22T10:00:00Z`: Kubernetes keeps whole seconds. */
const secondsOf = (date: Date): string => date.toISOString().replace(/\.\d{3}Z$/, 'Z')

/** Conditions of an object's status, whoever wrote them. */
export function conditionsOf(object: KubeObject): readonly Condition[] {
  const { conditions } = (object['status'] ?? {}) as { conditions?: unknown }
  return Array.isArray(conditions) ? (conditions as Condition[]) : []
}

function cut(message: string): string {
  if (message.length <= MAX_MESSAGE) return message
  const kept = message.slice(0, MAX_MESSAGE - 1)
  // A character of two code units is not torn.
  return `${kept.replace(/[\uD800-\uDBFF]$/, '')}…`
}
