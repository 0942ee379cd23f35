import { canonicalJson } from '../../resources/index.ts'
import type { KubeObject, ResourceType } from '../../kube/index.ts'
import { type Action, type Plan, statusAction } from '../actions.ts'
import { changedConditions, type Condition, conditionsFrom, conditionsOf, type Finding } from '../conditions.ts'
import { eventOf } from '../events.ts'
import type { ReferringKind } from '../kinds.ts'
import { secretsFinding, type SecretStates } from '../secret-states.ts'

/** The observed state of one MCPExternalAuthConfig, MCPOIDCConfig or MCPTelemetryConfig. */
export interface ConfigSnapshot {
  readonly object: KubeObject
  readonly type: ResourceType
  /** The validation result of its spec, in the wording of `validate`; `configHash` if it is valid. */
  readonly verdict: { readonly problems: readonly string[]; readonly configHash: string | undefined }
  /** Workloads of its namespace that refer to it. */
  readonly workloads: readonly { readonly kind: ReferringKind; readonly name: string }[]
  /** False for kinds that cannot be injected into pods. */
  readonly isInjectable: boolean
  /** Running pods of its namespace that were injected for it. */
  readonly pods: readonly string[]
  /** Those of them that differ from a newly created pod. */
  readonly oldPods: readonly string[]
  /** Secrets that it references. */
  readonly secrets: SecretStates
  /** Upstreams of an embedded authorization server without user identity; undefined for other types. */
  readonly synthesized?: readonly string[] | undefined
  readonly isNamespaceTerminating: boolean
  /** The finalizer of the group. */
  readonly finalizer: string
  /** False beside another operator of the same group: only conditions with a prefix are written (kubernetes.md §1). */
  readonly ownsKind: boolean
  readonly now: Date
}

export interface ConfigStatus {
  readonly observedGeneration?: number
  readonly configHash?: string
  readonly referenceCount?: number
  readonly referencingWorkloads?: readonly { readonly kind: string; readonly name: string }[]
  readonly conditions: readonly Condition[]
}

/** Prefix of condition types if another operator owns the kind. */
const GUEST_PREFIX = 'extauth.dev/'

/** Computes the desired state of one config (kubernetes.md §2). Pure: no I/O, no clock. */
export function reconcileConfig(snapshot: ConfigSnapshot): Plan {
  const { object, type, workloads, ownsKind } = snapshot
  const isDeleting = object.metadata.deletionTimestamp !== undefined
  const finalizers = object.metadata.finalizers ?? []
  const isUsed = workloads.length > 0 || snapshot.pods.length > 0
  const isHeld = ownsKind && isUsed && !snapshot.isNamespaceTerminating
  const actions: Action[] = []
  const wanted = wantedFinalizers(snapshot, isDeleting, isHeld)
  if (isDeleting && !wanted.includes(snapshot.finalizer) && finalizers.includes(snapshot.finalizer)) {
    // This write removes the object, so there is no status to write.
    return { actions: [{ do: 'set_finalizers', type, object, finalizers: wanted }], events: [] }
  }
  if (wanted.length !== finalizers.length) actions.push({ do: 'set_finalizers', type, object, finalizers: wanted })

  const before = conditionsOf(object)
  const findings = findingsOf(snapshot, isDeleting && isHeld, ownsKind ? '' : GUEST_PREFIX)
  const conditions = conditionsFrom(findings, before, object.metadata.generation, snapshot.now)
  const status = ownsKind ? statusOf(snapshot, conditions) : { conditions }
  if (canonicalJson(status) !== canonicalJson(ownStatus(object, conditions, ownsKind)))
    actions.push(
      ownsKind
        ? statusAction(type, object, status)
        : { do: 'set_conditions', type, object, conditions: [...theirs(before), ...conditions] },
    )
  return {
    actions,
    events: changedConditions(conditions, before).map((condition) => eventOf(object, condition, before)),
  }
}

/** The operator's finalizer stays while the object exists, to hold a deletion; other finalizers are kept. */
function wantedFinalizers(
  { object, finalizer, ownsKind }: ConfigSnapshot,
  isDeleting: boolean,
  isHeld: boolean,
): readonly string[] {
  const finalizers = object.metadata.finalizers ?? []
  if (!ownsKind) return finalizers
  const isThere = finalizers.includes(finalizer)
  if (isDeleting) return isThere && !isHeld ? finalizers.filter((name) => name !== finalizer) : finalizers
  return isThere ? finalizers : [...finalizers, finalizer]
}

function findingsOf(snapshot: ConfigSnapshot, isBlocked: boolean, prefix: string): Finding[] {
  const { problems } = snapshot.verdict
  const isValid = problems.length === 0
  const valid: Finding = isValid
    ? { type: 'Valid', status: 'True', reason: 'ValidationSucceeded', message: 'the configuration is valid' }
    : { type: 'Valid', status: 'False', reason: 'ValidationFailed', message: problems.join('\n') }
  const secrets = secretsOf(snapshot)
  const ready: Finding = !isValid
    ? {
        type: 'Ready',
        status: 'False',
        reason: 'ValidationFailed',
        message: 'the configuration is not valid; see Valid',
      }
    : secrets.status === 'False'
      ? { type: 'Ready', status: 'False', reason: secrets.reason, message: secrets.message }
      : { type: 'Ready', status: 'True', reason: 'ConfigReady', message: 'the configuration can be used' }
  const pods = snapshot.isInjectable ? [podsFinding(snapshot)] : []
  const identity = snapshot.synthesized === undefined ? [] : [identityFinding(snapshot.synthesized)]
  const all = [valid, secrets, ready, deletionFinding(snapshot, isBlocked), ...pods, ...identity]
  return prefix === ''
    ? all
    : all.map(({ type, status, reason, message }) => ({ type: prefix + type, status, reason, message }))
}

/** Type and reasons are those of the original controller of these kinds. */
export function identityFinding(synthesized: readonly string[]): Finding {
  const type = 'IdentitySynthesized'
  if (synthesized.length === 0)
    return { type, status: 'False', reason: 'AllUpstreamsHaveUserInfo', message: 'each upstream identifies the user' }
  const message = `upstreams without userInfo and identityFromToken: ${shortened(synthesized)}; each login there is a user of its own`
  return { type, status: 'True', reason: 'OAuth2UpstreamWithoutUserInfo', message }
}

function secretsOf({ secrets, verdict }: ConfigSnapshot): Finding {
  if (verdict.problems.length > 0)
    return {
      type: 'SecretsResolved',
      status: 'Unknown',
      reason: 'ValidationFailed',
      message: 'not evaluated while the configuration is not valid',
    }
  return secretsFinding(secrets)
}

function deletionFinding({ workloads, pods }: ConfigSnapshot, isBlocked: boolean): Finding {
  const type = 'DeletionBlocked'
  if (!isBlocked) return { type, status: 'False', reason: 'NotReferenced', message: '' }
  const named = sorted(workloads).map(({ kind, name }) => `${kind}/${name}`)
  const parts = [named.join(', '), pods.length === 0 ? '' : `injected pods: ${shortened(pods)}`]
  const users = parts.filter((part) => part !== '').join('; ')
  return {
    type,
    status: 'True',
    reason: 'ReferencedByWorkloads',
    message: `deletion waits until nothing refers to it: ${users}`,
  }
}

/** Which pods have it injected; a pod with an outdated form gets the current one only when it is recreated. */
function podsFinding({ pods, oldPods }: ConfigSnapshot): Finding {
  const type = 'InjectedPodsCurrent'
  if (pods.length === 0) return { type, status: 'Unknown', reason: 'NoInjectedPods', message: 'no pod has it injected' }
  if (oldPods.length === 0)
    return { type, status: 'True', reason: 'PodsCurrent', message: `injected pods: ${shortened(pods)}` }
  const message = `pods that lack a key of a Secret or run another image, until they are recreated: ${shortened(oldPods)}`
  const current = pods.filter((pod) => !oldPods.includes(pod))
  const others = current.length === 0 ? '' : `; current: ${shortened(current)}`
  return { type, status: 'False', reason: 'PodsOutdated', message: message + others }
}

const MOST_NAMED = 20

const shortened = (names: readonly string[]): string =>
  names.length <= MOST_NAMED
    ? names.join(', ')
    : `${names.slice(0, MOST_NAMED).join(', ')} and ${names.length - MOST_NAMED} more`

function statusOf(
  { object, verdict, workloads, pods }: ConfigSnapshot,
  conditions: readonly Condition[],
): ConfigStatus {
  const before = (object['status'] ?? {}) as ConfigStatus
  // An invalid spec has no hash; the hash of the last valid spec identifies what workloads still run.
  const configHash = verdict.configHash ?? before.configHash
  const referencingWorkloads = sorted(workloads)
  return {
    ...(object.metadata.generation === undefined ? {} : { observedGeneration: object.metadata.generation }),
    ...(configHash === undefined ? {} : { configHash }),
    referenceCount: referencingWorkloads.length + pods.length,
    referencingWorkloads,
    conditions,
  }
}

function sorted(workloads: ConfigSnapshot['workloads']): { kind: string; name: string }[] {
  const byKey = new Map(workloads.map(({ kind, name }) => [`${kind}/${name}`, { kind, name }]))
  return [...byKey].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, workload]) => workload)
}

const theirs = (conditions: readonly Condition[]): Condition[] =>
  conditions.filter(({ type }) => !type.startsWith(GUEST_PREFIX))

/** The fields of the current status that the operator would write. */
function ownStatus(object: KubeObject, conditions: readonly Condition[], ownsKind: boolean): ConfigStatus {
  const status = (object['status'] ?? {}) as ConfigStatus
  const types = new Set(conditions.map(({ type }) => type))
  const written = conditions.map(({ type }) => type)
  const kept = conditionsOf(object)
    .filter(({ type }) => types.has(type))
    .sort((a, b) => written.indexOf(a.type) - written.indexOf(b.type))
  if (!ownsKind) return { conditions: kept }
  const { observedGeneration, configHash, referenceCount, referencingWorkloads } = status
  return {
    ...(observedGeneration === undefined ? {} : { observedGeneration }),
    ...(configHash === undefined ? {} : { configHash }),
    ...(referenceCount === undefined ? {} : { referenceCount }),
    ...(referencingWorkloads === undefined ? {} : { referencingWorkloads }),
    conditions: kept,
  }
}
