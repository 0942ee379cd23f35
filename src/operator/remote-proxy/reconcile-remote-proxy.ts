import type { KubeObject, ResourceType } from '../../kube/index.ts'
import { canonicalJson } from '../../resources/index.ts'
import { type Action, type Plan, statusAction } from '../actions.ts'
import { changedConditions, type Condition, conditionsFrom, conditionsOf, type Finding } from '../conditions.ts'
import { eventOf } from '../events.ts'
import { ownedName } from '../names.ts'
import { forbiddenSecrets, secretsFinding, type SecretStates } from '../secret-states.ts'
import { isAppliedFrom, isAsWanted, stamped } from '../wanted.ts'
import { revisionOf, unexpectedKeys } from './config-map.ts'
import { OWNED_TYPES, ownedObjects, type WantedObject } from './objects.ts'
import type { PodReport } from './pod-reports.ts'
import { type RemoteProxy, selectorLabels, serviceUrl } from './remote-proxy.ts'

/** The state of a referenced object. */
export type ReferenceState =
  | { readonly is: 'valid'; readonly configHash: string }
  | {
      readonly is: 'not_found' | 'invalid' | 'wrong_kind' | 'wrong_type' | 'too_many_upstreams'
      readonly message: string
    }

/** The observed state of one MCPRemoteProxy. */
export interface RemoteProxySnapshot {
  readonly object: KubeObject
  readonly type: ResourceType
  /** The desired proxy, or the problems of its spec. */
  readonly wanted: RemoteProxy | { readonly problems: readonly string[] }
  /** Undefined without such a reference. */
  readonly externalAuth: ReferenceState | undefined
  readonly authServer: ReferenceState | undefined
  /** The MCPOIDCConfig for its callers. */
  readonly callers?: ReferenceState | undefined
  /** The MCPTelemetryConfig for its traces. */
  readonly telemetry?: ReferenceState | undefined
  /** The MCPToolConfig with the tools that callers may use. */
  readonly tools?: ReferenceState | undefined
  readonly secrets: SecretStates
  /** Session storage of its embedded authorization server; undefined without one. */
  readonly sessions?: 'memory' | 'store' | undefined
  /** Storage of its connections; undefined without them. */
  readonly connections?: 'memory' | 'store' | undefined
  /** Objects of the owned kinds with the current name. */
  readonly owned: readonly WantedObject[]
  /** Objects of these kinds with the name of earlier releases. */
  readonly earlier: readonly WantedObject[]
  /** The last valid proxy: drift is reverted to it while the current one is invalid. */
  readonly lastGood?: RemoteProxy | undefined
  /** An object that the API server just rejected: then only the status is written. */
  readonly refused?: { readonly what: string; readonly message: string } | undefined
  /** Its ready pods and their reports; undefined: they are not polled. */
  readonly reports?: readonly (PodReport | undefined)[] | undefined
  readonly now: Date
}

/** Computes the desired state of one MCPRemoteProxy (kubernetes.md §3). Pure: no I/O, no clock. */
export function reconcileRemoteProxy(snapshot: RemoteProxySnapshot): Plan {
  const { object, type } = snapshot
  // The garbage collector removes its owned objects.
  if (object.metadata.deletionTimestamp !== undefined) return { actions: [], events: [] }
  const proxy = runnableProxy(snapshot) ?? snapshot.lastGood
  const actions = proxy === undefined || snapshot.refused !== undefined ? [] : objectActions(snapshot, proxy)
  const before = conditionsOf(object)
  const findings = findingsOf(snapshot, actions)
  actions.push(...earlierRemovals(snapshot, findings))
  const conditions = conditionsFrom(findings, before, object.metadata.generation, snapshot.now)
  const status = statusOf(snapshot, conditions)
  if (canonicalJson(status) !== canonicalJson(writtenStatus(object, conditions)))
    actions.push(statusAction(type, object, status))
  return {
    actions,
    events: changedConditions(conditions, before).map((condition) => eventOf(object, condition, before)),
  }
}

/** The desired proxy if it can run; an invalid one never replaces a running one. */
export function runnableProxy({
  wanted,
  externalAuth,
  authServer,
  callers,
  telemetry,
  tools,
  secrets,
}: Pick<
  RemoteProxySnapshot,
  'wanted' | 'externalAuth' | 'authServer' | 'callers' | 'telemetry' | 'tools' | 'secrets'
>): RemoteProxy | undefined {
  const isRunnable =
    [externalAuth, authServer, callers, telemetry, tools].every(
      (state) => state === undefined || state.is === 'valid',
    ) && forbiddenSecrets(secrets).length === 0
  return 'problems' in wanted || !isRunnable ? undefined : wanted
}

function objectActions(snapshot: RemoteProxySnapshot, proxy: RemoteProxy): Action[] {
  const wanted = ownedObjects(proxy)
  const observedOf = (type: ResourceType): KubeObject | undefined =>
    snapshot.owned.find((one) => one.type.kind === type.kind)?.object
  const applies = wanted.flatMap(({ type, object }): Action[] => {
    const marked = stamped(object)
    const before = observedOf(type)
    const isUnset = type.kind === 'Deployment' && before !== undefined && proxy.replicas === undefined
    const keeps = isUnset ? { keepsReplicas: true } : {}
    const keys = type.kind === 'ConfigMap' ? unexpectedKeys(object, before) : []
    return [
      ...(isAsWanted(marked, before) ? [] : [{ do: 'apply', type, object: marked, before, ...keeps } as const]),
      ...(keys.length === 0 ? [] : [{ do: 'remove_keys', type, object, keys } as const]),
    ]
  })
  const kinds = new Set(wanted.map(({ type }) => type.kind))
  const removals = OWNED_TYPES.filter(({ kind }) => !kinds.has(kind)).flatMap((type): Action[] => {
    const object = observedOf(type)
    return object === undefined || !isOwned(object, snapshot.object) ? [] : [{ do: 'remove', type, object }]
  })
  return [...applies, ...removals]
}

/**
 * Removes objects of an earlier release once they are replaced: budget and policy at once (an eviction fails with two
 * budgets for one pod), pods and their mounts once the new ones are available. The Service stays, because routes may
 * reference it: it selects the same pods.
 */
function earlierRemovals(
  { earlier, owned, object: owner }: RemoteProxySnapshot,
  findings: readonly Finding[],
): Action[] {
  const isReplaced = owned.some(({ type }) => type.kind === 'Deployment')
  const isReady = findings.some(({ type, status }) => type === 'Ready' && status === 'True')
  const replaced = isReady ? EARLIER_WHEN_READY : isReplaced ? EARLIER_AT_ONCE : []
  return earlier
    .filter(({ type, object }) => replaced.includes(type.kind) && isOwned(object, owner))
    .map(({ type, object }) => ({ do: 'remove', type, object }))
}
const EARLIER_AT_ONCE: readonly string[] = ['PodDisruptionBudget', 'NetworkPolicy']
const EARLIER_WHEN_READY: readonly string[] = [...EARLIER_AT_ONCE, 'Deployment', 'ConfigMap', 'ServiceAccount']

const isOwned = (object: KubeObject, owner: KubeObject): boolean =>
  object.metadata.ownerReferences?.some(({ uid }) => uid === owner.metadata.uid) === true

const EXTERNAL_REASONS = {
  not_found: 'ExternalAuthConfigNotFound',
  invalid: 'ExternalAuthConfigInvalid',
  wrong_kind: 'ExternalAuthConfigInvalid',
  wrong_type: 'ExternalAuthConfigInvalid',
  too_many_upstreams: 'MultiUpstreamNotSupported',
} as const
const SERVER_REASONS = {
  not_found: 'AuthServerRefNotFound',
  invalid: 'AuthServerRefInvalid',
  wrong_kind: 'AuthServerRefInvalidKind',
  wrong_type: 'AuthServerRefInvalidType',
  too_many_upstreams: 'MultiUpstreamNotSupported',
} as const

const sharedReasons = (about: string) => ({
  not_found: `${about}NotFound`,
  invalid: `${about}Invalid`,
  wrong_kind: `${about}Invalid`,
  wrong_type: `${about}Invalid`,
  too_many_upstreams: `${about}Invalid`,
})

function findingsOf(snapshot: RemoteProxySnapshot, actions: readonly Action[]): Finding[] {
  const { externalAuth, authServer, callers, telemetry, tools, secrets } = snapshot
  const found: Finding[] = []
  if (externalAuth !== undefined)
    found.push(
      referenceFinding('ExternalAuthConfigValidated', externalAuth, 'ExternalAuthConfigValid', EXTERNAL_REASONS),
    )
  if (authServer !== undefined)
    found.push(referenceFinding('AuthServerRefValidated', authServer, 'AuthServerRefValid', SERVER_REASONS))
  if (callers !== undefined)
    found.push(
      referenceFinding('OIDCConfigRefValidated', callers, 'OIDCConfigRefValid', sharedReasons('OIDCConfigRef')),
    )
  if (telemetry !== undefined) {
    const reasons = sharedReasons('TelemetryConfigRef')
    found.push(referenceFinding('TelemetryConfigRefValidated', telemetry, 'TelemetryConfigRefValid', reasons))
  }
  if (tools !== undefined)
    found.push(referenceFinding('ToolConfigRefValidated', tools, 'ToolConfigRefValid', sharedReasons('ToolConfigRef')))
  found.push(secretsFinding(secrets))
  if (snapshot.sessions !== undefined || snapshot.connections !== undefined) found.push(storageFinding(snapshot))
  return [readyFinding(snapshot, found, actions), ...found, ...podFindings(snapshot)]
}

/** Conditions from the reports of pods: whether they run the desired configuration and reach the remote server. */
function podFindings(snapshot: RemoteProxySnapshot): Finding[] {
  const { reports } = snapshot
  if (reports === undefined) return []
  const known = reports.filter((report) => report !== undefined)
  return [programmedFinding(snapshot, reports, known), remoteFinding(reports, known)]
}

function programmedFinding(
  snapshot: RemoteProxySnapshot,
  reports: readonly unknown[],
  known: readonly PodReport[],
): Finding {
  const type = 'Programmed'
  const no = (reason: string, message: string): Finding => ({ type, status: 'False', reason, message })
  const proxy = runnableProxy(snapshot)
  if (proxy === undefined) return no('ConfigurationInvalid', 'pods keep the last valid configuration')
  if (reports.length === 0) return no('NoReadyPods', 'no pod is ready')
  if (known.length === 0) return { type, status: 'Unknown', reason: 'PodsNotReached', message: NOT_REACHED }
  if (known.every((report) => report.revision === undefined)) {
    const message = 'the image of the pods is of a release that does not report its configuration'
    return { type, status: 'Unknown', reason: 'RevisionNotReported', message }
  }
  const revision = revisionOf(proxy)
  const current = known.filter((report) => report.revision === revision).length
  const message = `${current} of ${reports.length} pods run this configuration`
  return current === reports.length
    ? { type, status: 'True', reason: 'ConfigurationProgrammed', message }
    : no('ConfigurationPending', message)
}

const NOT_REACHED = 'the operator cannot read /readiness of the pods; check network policies for their admin port'

function remoteFinding(reports: readonly unknown[], known: readonly PodReport[]): Finding {
  const type = 'RemoteAvailable'
  const probed = known.flatMap(({ unreachable }) => (unreachable === undefined ? [] : [unreachable]))
  if (probed.length === 0) {
    const message = reports.length === 0 ? 'no pod is ready' : 'no pod has reported a probe'
    return { type, status: 'Unknown', reason: 'NotProbed', message }
  }
  const failing = probed.filter((failures) => failures.length > 0)
  const [first = []] = failing
  const message = `${failing.length} of ${probed.length} pods cannot connect to it: ${first.join(', ')}`
  return failing.length > 0
    ? { type, status: 'False', reason: 'RemoteUnreachable', message }
    : { type, status: 'True', reason: 'RemoteReachable', message: 'the pods connect to it' }
}

function referenceFinding(
  type: string,
  state: ReferenceState,
  valid: string,
  reasons: Readonly<Record<Exclude<ReferenceState['is'], 'valid'>, string>>,
): Finding {
  return state.is === 'valid'
    ? { type, status: 'True', reason: valid, message: 'the referenced configuration is valid' }
    : { type, status: 'False', reason: reasons[state.is], message: state.message }
}

/** Several pods with sessions or connections in memory: one pod does not know those of another. */
function storageFinding({ wanted, owned, sessions, connections }: RemoteProxySnapshot): Finding {
  const type = 'SessionStorageWarning'
  const deployment = owned.find((one) => one.type.kind === 'Deployment')?.object
  const { replicas: scaled } = (deployment?.spec ?? {}) as { readonly replicas?: number }
  const { replicas: fixed, autoscaling } = 'problems' in wanted ? {} : wanted
  const replicas = fixed ?? autoscaling?.maxReplicas ?? scaled ?? 1
  const inMemory = [
    ...(sessions === 'memory' ? [{ what: 'sessions', owner: 'the embeddedAuthServer' }] : []),
    ...(connections === 'memory' ? [{ what: 'connections', owner: 'connections' }] : []),
  ]
  const [what, owners] = [inMemory.map((one) => one.what), inMemory.map(({ owner }) => owner)].map((names) =>
    names.join(' and '),
  )
  if (inMemory.length === 0) {
    const kept = sessions === undefined ? 'connections' : 'sessions'
    return { type, status: 'False', reason: 'SessionStorageConfigured', message: `${kept} are kept in a store` }
  }
  if (replicas <= 1)
    return { type, status: 'False', reason: 'SessionStorageNotRequired', message: `one pod keeps all ${what}` }
  const message = `${replicas} pods keep ${what} in memory, each its own; set "storage" of ${owners}, or replicas: 1`
  return { type, status: 'True', reason: 'SessionStorageMissing', message }
}

interface DeploymentStatus {
  readonly observedGeneration?: number
  readonly replicas?: number
  readonly updatedReplicas?: number
  readonly readyReplicas?: number
  readonly availableReplicas?: number
  readonly conditions?: readonly { readonly type: string; readonly status: string; readonly message?: string }[]
}

/** The first missing requirement, in the order of dependencies. */
function readyFinding(
  snapshot: RemoteProxySnapshot,
  references: readonly Finding[],
  actions: readonly Action[],
): Finding {
  const type = 'Ready'
  const no = (reason: string, message: string): Finding => ({ type, status: 'False', reason, message })
  if ('problems' in snapshot.wanted) return no('SpecInvalid', snapshot.wanted.problems.join('\n'))
  const failed = references.find(({ type: one, status }) => status === 'False' && one !== 'SessionStorageWarning')
  if (failed !== undefined) return no(failed.reason, failed.message)
  if (snapshot.refused !== undefined) return no('ApplyRefused', refusalMessage(snapshot, snapshot.refused))
  const deployment = snapshot.owned.find((one) => one.type.kind === 'Deployment')?.object
  const pending = no('DeploymentPending', 'the Deployment has no status yet')
  // Its status describes the pods before this change. An object applied earlier may never equal the desired one.
  const isChanging = actions.some(
    ({ do: what, type: { kind }, object }) =>
      what === 'apply' && kind === 'Deployment' && deployment !== undefined && !isAppliedFrom(object, deployment),
  )
  if (deployment === undefined || isChanging) return pending
  const status = (deployment.status ?? {}) as DeploymentStatus
  const wanted = (deployment.spec as { replicas?: number } | undefined)?.replicas ?? 1
  const failure = status.conditions?.find(
    (one) =>
      (one.type === 'ReplicaFailure' && one.status === 'True') ||
      (one.type === 'Progressing' && one.status === 'False'),
  )
  if (failure !== undefined) return no('DeploymentFailing', failure.message ?? failure.type)
  if ((status.observedGeneration ?? 0) < (deployment.metadata.generation ?? 0)) return pending
  const { updatedReplicas = 0, availableReplicas = 0 } = status
  if (updatedReplicas < wanted) return no('RollingOut', `${updatedReplicas} of ${wanted} replicas are up to date`)
  if (availableReplicas < wanted)
    return no('ReplicasUnavailable', `${availableReplicas} of ${wanted} replicas are available`)
  return {
    type,
    status: 'True',
    reason: 'ProxyReady',
    message: `${availableReplicas} of ${wanted} replicas are available`,
  }
}

/** The first message about a generation is kept: different wording at each retry would cause a write each. */
function refusalMessage(
  { object }: RemoteProxySnapshot,
  { what, message }: NonNullable<RemoteProxySnapshot['refused']>,
): string {
  const beginning = `${what} was refused: `
  const earlier = conditionsOf(object).find(({ type }) => type === 'Ready')
  const isKnown = earlier?.observedGeneration === object.metadata.generation && earlier?.message.startsWith(beginning)
  return isKnown === true && earlier !== undefined ? earlier.message : beginning + message
}

function statusOf(snapshot: RemoteProxySnapshot, conditions: readonly Condition[]): object {
  const { object, wanted, externalAuth, authServer, callers, telemetry, tools } = snapshot
  const deployment = snapshot.owned.find((one) => one.type.kind === 'Deployment')?.object
  const { replicas = 0, readyReplicas = 0 } = (deployment?.status ?? {}) as DeploymentStatus
  const before = (object.status ?? {}) as Readonly<Record<string, unknown>>
  const url = 'problems' in wanted ? before['url'] : serviceUrl(wanted)
  // An invalid config keeps its hash: the pods still run it.
  const hash = (state: ReferenceState | undefined, field: string): unknown =>
    state === undefined ? undefined : state.is === 'valid' ? state.configHash : before[field]
  return present({
    observedGeneration: object.metadata.generation,
    url,
    externalURL: 'problems' in wanted ? before['externalURL'] : wanted.externalUrl,
    serviceName: 'problems' in wanted ? before['serviceName'] : ownedName(wanted.name),
    externalAuthConfigHash: hash(externalAuth, 'externalAuthConfigHash'),
    authServerConfigHash: hash(authServer, 'authServerConfigHash'),
    oidcConfigHash: hash(callers, 'oidcConfigHash'),
    telemetryConfigHash: hash(telemetry, 'telemetryConfigHash'),
    toolConfigHash: hash(tools, 'toolConfigHash'),
    replicas,
    readyReplicas,
    selector: 'problems' in wanted ? before['selector'] : selectorText(wanted),
    conditions,
  })
}

/** Selector of the pods, for autoscalers. */
const selectorText = (proxy: RemoteProxy): string =>
  Object.entries(selectorLabels(proxy))
    .map(([name, value]) => `${name}=${value}`)
    .join(',')

const STATUS_FIELDS = [
  'observedGeneration',
  'url',
  'externalURL',
  'serviceName',
  'externalAuthConfigHash',
  'authServerConfigHash',
  'oidcConfigHash',
  'telemetryConfigHash',
  'toolConfigHash',
  'replicas',
  'readyReplicas',
  'selector',
] as const

function writtenStatus(object: KubeObject, conditions: readonly Condition[]): object {
  const status = (object.status ?? {}) as Readonly<Record<string, unknown>>
  const order = conditions.map(({ type }) => type)
  const kept = conditionsOf(object).filter(({ type }) => OUR_CONDITIONS.has(type))
  return present({
    ...Object.fromEntries(STATUS_FIELDS.map((name) => [name, status[name]])),
    conditions: kept.toSorted((a, b) => order.indexOf(a.type) - order.indexOf(b.type)),
  })
}

const OUR_CONDITIONS: ReadonlySet<string> = new Set([
  'Ready',
  'ExternalAuthConfigValidated',
  'AuthServerRefValidated',
  'OIDCConfigRefValidated',
  'TelemetryConfigRefValidated',
  'ToolConfigRefValidated',
  'SecretsResolved',
  'SessionStorageWarning',
  'Programmed',
  'RemoteAvailable',
])

const present = (fields: Readonly<Record<string, unknown>>): object =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
