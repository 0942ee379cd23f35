import type { KubeObject } from '../kube/index.ts'

/** One condition of a status (Kubernetes API conventions). */
export interface Condition {
  readonly type: string
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason: string
  readonly message: string
  readonly lastTransitionTime: string
  readonly observedGeneration?: number
}

/** A condition as found now, before comparison with the status. */
export type Finding = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>

/** Maximum length of `message` (specification). */
const MAX_MESSAGE = 32_768

/**
 * The conditions to write: `lastTransitionTime` changes only with the status of a condition. Conditions of other
 * types keep their owner (server-side apply).
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
      message: truncate(finding.message),
      lastTransitionTime: isSame ? earlier.lastTransitionTime : secondsOf(now),
      ...(generation === undefined ? {} : { observedGeneration: generation }),
    }
  })
}

/** The conditions whose status or reason changed: each is worth one event, except an initial condition without news. */
export const changedConditions = (after: readonly Condition[], before: readonly Condition[]): Condition[] =>
  after.filter((condition) => {
    const earlier = before.find(({ type }) => type === condition.type)
    if (earlier === undefined) return condition.status !== 'Unknown' && !isQuiet(condition)
    return earlier.status !== condition.status || earlier.reason !== condition.reason
  })

/** Conditions that are healthy when False. */
const GOOD_WHEN_FALSE: ReadonlySet<string> = new Set([
  'DeletionBlocked',
  'IdentitySynthesized',
  'SessionStorageWarning',
])

/** A condition that is healthy because something is absent. */
const isQuiet = ({ type, status }: Condition): boolean => GOOD_WHEN_FALSE.has(withoutPrefix(type)) && status === 'False'

/** Whether a condition requires no action. */
export const isGood = (condition: Condition): boolean =>
  condition.status === 'Unknown' || (condition.status === 'True') !== GOOD_WHEN_FALSE.has(withoutPrefix(condition.type))

/** Reasons of an object during a rollout. */
const PROGRESS: ReadonlySet<string> = new Set(['DeploymentPending', 'RollingOut', 'ReplicasUnavailable'])

/** Temporary reasons after each change of a configuration and each creation. */
const ORDINARY: ReadonlySet<string> = new Set(['ConfigurationPending', 'NoReadyPods'])

/** Whether a condition needs attention: an object that was never ready passes through these reasons. */
export const isWarning = (condition: Condition, before: readonly Condition[]): boolean => {
  const earlier = before.find(({ type }) => type === condition.type)
  return (
    !isGood(condition) &&
    !ORDINARY.has(condition.reason) &&
    !(PROGRESS.has(condition.reason) && earlier?.status !== 'True')
  )
}

const withoutPrefix = (type: string): string => type.slice(type.indexOf('/') + 1)

/** `2026-11-22T10:00:00Z`: Kubernetes stores whole seconds. */
const secondsOf = (date: Date): string => date.toISOString().replace(/\.\d{3}Z$/, 'Z')

/** All conditions in the status of an object, of any owner. */
export function conditionsOf(object: KubeObject): readonly Condition[] {
  const { conditions } = (object['status'] ?? {}) as { conditions?: unknown }
  return Array.isArray(conditions) ? (conditions as Condition[]) : []
}

function truncate(message: string): string {
  if (message.length <= MAX_MESSAGE) return message
  const kept = message.slice(0, MAX_MESSAGE - 1)
  // Do not split a surrogate pair.
  return `${kept.replace(/[\uD800-\uDBFF]$/, '')}…`
}
