import { setTimeout as pause } from 'node:timers/promises'
import type { Clock, Log, Metrics } from '../core/index.ts'
import {
  createQueue,
  type KubeClient,
  KubeError,
  type KubeObject,
  type Queue,
  RESTART_REASONS,
  type ResourceType,
} from '../kube/index.ts'
import type { Plan } from './actions.ts'
import { createKnownConfigs, type KnownConfigs } from './config/known-config.ts'
import { createKnownSharedConfigs, type KnownSharedConfig } from './config/known-shared-configs.ts'
import { createPlanner } from './plans.ts'
import { ApplyRefused, createExecutor } from './executor.ts'
import { CONFIG_KINDS, isShared, type OwnTypes, REFERRING_KINDS, SHARED_KINDS } from './kinds.ts'
import { imageIn, isUsable, observe, type Observed } from './observed.ts'
import { createSecretLookup, type SecretLookup } from './secret-states.ts'
import { followObjects, type OperatorMetrics } from './object-series.ts'
import { createReferenceIndex } from './reference-index.ts'
import { podKeys, referencedConfigs } from './references.ts'
import type { SnapshotSettings } from './remote-proxy/snapshot.ts'
import { taskOf, type LookedAt, partsOf, touchedBy } from './touched.ts'

export interface ControllerOptions {
  readonly client: KubeClient
  readonly types: OwnTypes
  readonly settings: SnapshotSettings
  readonly namespace: string | undefined
  readonly watchSecrets: boolean
  /** False: the group belongs to another operator, whose objects get no finalizers and only conditions of our own. */
  readonly ownsKinds: boolean
  /** Our conditions are written at all (always in our own group). */
  readonly writesStatus: boolean
  /** Asked before every write. */
  readonly isLeader: () => boolean
  readonly instance: string
  readonly clock: Clock
  readonly log: Log
  readonly metrics: OperatorMetrics
}

export interface Controller {
  /** Looks at everything: after leadership was acquired. */
  start(): void
  readonly observed: Observed
  readonly known: KnownConfigs
  readonly knownShared: (object: KubeObject) => KnownSharedConfig
  readonly secretsOf: SecretLookup
  /** Resolves when nothing is waiting; for tests. */
  idle(): Promise<void>
  close(): Promise<void>
}

const MOST_WAIT_MS = 5_000
const WAIT_STEP_MS = 50
/** Milliseconds of work on the matchers of one config: much more than any that is used needs. */
const MOST_JUDGING_MS = 10_000
const SECONDS = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10]

const LOOKED_AT = [...CONFIG_KINDS, ...REFERRING_KINDS]
const OUTCOMES = ['ok', 'conflict', 'failed']

/** What is counted of the work; what has not happened yet is 0, so that its first time is a rise. */
function openSeries(metrics: Metrics) {
  const reconciles = metrics.counter('extauth_operator_reconciles_total', 'Looks at objects by kind and outcome.', [
    'kind',
    'outcome',
  ])
  const duration = metrics.histogram(
    'extauth_operator_reconcile_duration_seconds',
    'Time of one look, writes included.',
    ['kind'],
    SECONDS,
  )
  const depth = metrics.gauge('extauth_operator_queue_depth', 'Objects that wait to be looked at.').with()
  const restarts = metrics.counter(
    'extauth_operator_watch_restarts_total',
    'Watches that had to be made anew, by kind and reason.',
    ['kind', 'reason'],
  )
  for (const kind of LOOKED_AT) for (const outcome of OUTCOMES) reconciles.with(kind, outcome).add(0)
  return { reconciles, duration, depth, restarts }
}

/** Follows the cluster and carries out what the pure core says, one key at a time. */
export function createController(options: ControllerOptions): Controller {
  const { client, types, clock, log, metrics, settings } = options
  const keys = podKeys(settings.apiGroup)
  const references = createReferenceIndex(keys)
  const known = createKnownConfigs(settings.apiGroup)
  const knownShared = createKnownSharedConfigs(settings.apiGroup)
  const { reconciles, duration, depth, restarts } = openSeries(metrics)
  // In a group of another operator, readiness is that operator's to say.
  const showReady = options.ownsKinds ? followObjects(metrics) : undefined
  /** Events are a courtesy: while objects wait to be looked at, one in a while is enough. */
  const calm = async (): Promise<void> => {
    const endMs = clock.now() + MOST_WAIT_MS
    while (queue.depth > 0 && options.isLeader() && clock.now() < endMs) await pause(WAIT_STEP_MS)
  }
  const executor = createExecutor({
    client,
    clock,
    instance: options.instance,
    mayWrite: options.isLeader,
    onWritten: (type, object) => observed.learn(type, object),
    calm,
    log,
  })

  const work = async (key: string): Promise<number | undefined> => {
    if (!options.isLeader()) return undefined
    const startedMs = clock.now()
    const { kind } = partsOf(key)
    try {
      await judgeMatchersFor(key)
      const plan = planFor(key)
      if (plan === undefined) return undefined
      await carryOut(key, plan)
      reconciles.with(kind, 'ok').add()
      return plan.requeueAfterMs
    } catch (error) {
      reconciles.with(kind, error instanceof KubeError && error.status === 409 ? 'conflict' : 'failed').add()
      throw error
    } finally {
      depth.set(queue.depth)
      duration.with(kind).observe((clock.now() - startedMs) / 1000)
    }
  }
  const queue: Queue = createQueue({
    work,
    log,
    concurrency: 16,
    // A moment later than asked for: by the server's clock it must not be earlier.
    retryAfterMs: (error) =>
      error instanceof KubeError && error.retryAfterSeconds !== undefined
        ? error.retryAfterSeconds * 1000 + 50
        : undefined,
  })
  let isStarted = false
  const add = (key: string): void => {
    // Nobody looks before leadership is there and every collection was read (without its workloads, a config looks as if
    // nothing referred to it); `start` looks at everything then.
    if (!isStarted) return
    queue.add(key)
    depth.set(queue.depth)
  }

  /** An object that the API server refuses is told in the status of the proxy that it is for. */
  const carryOut = async (key: string, plan: Plan): Promise<void> => {
    try {
      await executor.run(plan)
    } catch (error) {
      const isOfProxy = partsOf(key).kind === 'MCPRemoteProxy'
      const said = error instanceof ApplyRefused && isOfProxy ? planFor(key, error) : undefined
      if (said !== undefined) await executor.run(said)
      throw error
    }
  }

  /** Large configs are read a little at a time: the lease and webhooks must not wait for them. */
  const judgeMatchersFor = async (key: string): Promise<void> => {
    const { kind, namespace, name } = partsOf(key)
    if (isShared(kind)) return
    const workload = kind === 'MCPExternalAuthConfig' ? undefined : observed.workload(kind, namespace, name)
    const names =
      kind === 'MCPExternalAuthConfig' || workload === undefined ? [name] : referencedConfigs(kind, workload)
    for (const one of names) {
      const config = observed.config(namespace, one)
      const judged = await known.prepare(config, { mostMs: MOST_JUDGING_MS })
      if (judged !== 'judged' && config !== undefined) known.giveUp(config)
    }
  }

  /** Services that the URLs of each proxy name. */
  const serviceUsers = new Map<string, readonly string[]>()
  const addServiceUsers = ({ metadata: { namespace = '', name } }: KubeObject): void => {
    for (const [key, services] of serviceUsers) if (services.includes(`${namespace}/${name}`)) add(key)
  }

  const onChange = (type: ResourceType, before: KubeObject | undefined, after: KubeObject | undefined): void => {
    showReady?.(type, before, after)
    for (const key of touchedBy(type, before, after, references)) add(key)
    if (type.kind === 'Namespace' && after?.metadata.deletionTimestamp !== undefined) addNamespace(after.metadata.name)
    if (type.kind === 'Namespace' && after !== undefined && imageIn(after) !== imageIn(before))
      addNamespace(after.metadata.name)
    const service = after ?? before
    if (
      type.kind === 'Service' &&
      service !== undefined &&
      JSON.stringify(before?.spec) !== JSON.stringify(after?.spec)
    )
      addServiceUsers(service)
    const isOther = before === undefined || after === undefined || isUsable(before) !== isUsable(after)
    if (type.kind === 'Secret' && isOther) {
      const { namespace = '' } = (after ?? before)?.metadata ?? { name: '' }
      addNamespace(namespace)
    }
  }
  const addNamespace = (namespace: string): void => {
    for (const { metadata } of observed.configs())
      if (metadata.namespace === namespace) add(taskOf('MCPExternalAuthConfig', namespace, metadata.name))
    for (const kind of SHARED_KINDS)
      for (const { metadata } of observed.allShared(kind))
        if (metadata.namespace === namespace) add(taskOf(kind, namespace, metadata.name))
    for (const { metadata } of observed.workloads('MCPRemoteProxy'))
      if (metadata.namespace === namespace) add(taskOf('MCPRemoteProxy', namespace, metadata.name))
  }
  const observed = observe({
    client,
    types,
    keys,
    namespace: options.namespace,
    watchSecrets: options.watchSecrets,
    ownsKinds: options.ownsKinds,
    onChange,
    onRestart: (kind, reason) => restarts.with(kind, reason).add(),
    log,
  })
  for (const kind of observed.kinds) for (const reason of RESTART_REASONS) restarts.with(kind, reason).add(0)

  const secretsOf = createSecretLookup(observed, settings.secretsByLabel)
  const { ownsKinds, writesStatus } = options
  const planFor = createPlanner({
    observed,
    references,
    known,
    knownShared,
    secretsOf,
    types,
    settings,
    ownsKinds,
    writesStatus,
    onServices(key, services) {
      if (services.length > 0) serviceUsers.set(key, services)
      else serviceUsers.delete(key)
    },
    clock,
  })

  return {
    observed,
    known,
    knownShared,
    secretsOf,
    start() {
      isStarted = true
      const addAll = (kind: LookedAt, objects: readonly KubeObject[]): void => {
        for (const { metadata } of objects) queue.add(taskOf(kind, metadata.namespace ?? '', metadata.name))
      }
      addAll('MCPExternalAuthConfig', observed.configs())
      for (const kind of SHARED_KINDS) addAll(kind, observed.allShared(kind))
      for (const kind of REFERRING_KINDS) addAll(kind, observed.workloads(kind))
    },
    async idle() {
      await queue.idle()
      await executor.idle()
    },
    async close() {
      observed.close()
      await queue.close()
      await executor.idle()
    },
  }
}
