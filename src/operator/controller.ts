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
import { instanceName } from './names.ts'
import { followObjects, type OperatorMetrics } from './object-series.ts'
import { createReferenceIndex } from './reference-index.ts'
import { podKeys, referencedConfigs } from './references.ts'
import { createPodReports, type PodReports, type ReportingPod } from './remote-proxy/pod-reports.ts'
import type { SnapshotSettings } from './remote-proxy/snapshot.ts'
import { taskOf, type ReconciledKind, partsOf, touchedBy } from './touched.ts'

export interface ControllerOptions {
  readonly client: KubeClient
  readonly types: OwnTypes
  readonly settings: SnapshotSettings
  readonly namespace: string | undefined
  readonly watchSecrets: boolean
  /** False: the group belongs to another operator, whose objects get no finalizers and only prefixed conditions. */
  readonly ownsKinds: boolean
  /** Whether conditions are written at all (always in the operator's own group). */
  readonly writesStatus: boolean
  /** Checked before every write. */
  readonly isLeader: () => boolean
  readonly instance: string
  /** Reads `/readiness` of a pod as JSON, with limits; absent: pods are not polled. */
  readonly readPod?: ((url: string) => Promise<unknown>) | undefined
  readonly clock: Clock
  readonly log: Log
  readonly metrics: OperatorMetrics
}

export interface Controller {
  /** Reconciles all objects: after leadership was acquired. */
  start(): void
  readonly observed: Observed
  readonly known: KnownConfigs
  readonly knownShared: (object: KubeObject) => KnownSharedConfig
  readonly secretsOf: SecretLookup
  /** Resolves when the queue is empty; for tests. */
  idle(): Promise<void>
  close(): Promise<void>
}

const MOST_WAIT_MS = 5_000
const WAIT_STEP_MS = 50
/** Maximum milliseconds for the matchers of one config; far more than realistic ones need. */
const MAX_VALIDATION_MS = 10_000
const SECONDS = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10]

const LOOKED_AT = [...CONFIG_KINDS, ...REFERRING_KINDS]
const OUTCOMES = ['ok', 'conflict', 'failed']

/** Metrics of reconciliation; initialized to 0, so that the first increment is visible. */
function openSeries(metrics: Metrics) {
  const reconciles = metrics.counter('extauth_operator_reconciles_total', 'Reconciliations by kind and outcome.', [
    'kind',
    'outcome',
  ])
  const duration = metrics.histogram(
    'extauth_operator_reconcile_duration_seconds',
    'Duration of one reconciliation, including writes.',
    ['kind'],
    SECONDS,
  )
  const depth = metrics.gauge('extauth_operator_queue_depth', 'Objects waiting for reconciliation.').with()
  const restarts = metrics.counter('extauth_operator_watch_restarts_total', 'Watch restarts by kind and reason.', [
    'kind',
    'reason',
  ])
  for (const kind of LOOKED_AT) for (const outcome of OUTCOMES) reconciles.with(kind, outcome).add(0)
  return { reconciles, duration, depth, restarts }
}

/** Watches the cluster and executes the plans of the pure core, one key at a time. */
export const createController = (options: ControllerOptions): Controller => new ClusterController(options)

class ClusterController implements Controller {
  readonly observed: Observed
  readonly known: KnownConfigs
  readonly knownShared: Controller['knownShared']
  readonly secretsOf: SecretLookup
  readonly #options: ControllerOptions
  readonly #references: ReturnType<typeof createReferenceIndex>
  readonly #planFor: ReturnType<typeof createPlanner>
  readonly #executor: ReturnType<typeof createExecutor>
  readonly #queue: Queue
  readonly #series: ReturnType<typeof openSeries>
  readonly #showReady: ReturnType<typeof followObjects> | undefined
  /** Services in the URLs of each proxy, by the proxy's key. */
  readonly #services = new Map<string, readonly string[]>()
  readonly #reports: PodReports | undefined
  #isStarted = false

  constructor(options: ControllerOptions) {
    const { readPod } = options
    const { client, types, namespace, watchSecrets, ownsKinds, writesStatus, clock, log, metrics, settings } = options
    const keys = podKeys(settings.apiGroup)
    this.#options = options
    this.#references = createReferenceIndex(keys)
    this.known = createKnownConfigs(settings.apiGroup)
    this.knownShared = createKnownSharedConfigs(settings.apiGroup)
    this.#series = openSeries(metrics)
    // In a group of another operator, that operator reports readiness.
    this.#showReady = ownsKinds ? followObjects(metrics) : undefined
    this.#executor = createExecutor({
      client,
      clock,
      instance: options.instance,
      mayWrite: options.isLeader,
      onWritten: (type, object) => this.observed.learn(type, object),
      calm: () => this.#calm(),
      log,
    })
    this.#queue = createQueue({
      work: (key) => this.#work(key),
      log,
      concurrency: 16,
      // Slightly later than requested: by the server's clock it must not be earlier.
      retryAfterMs: (error) =>
        error instanceof KubeError && error.retryAfterSeconds !== undefined
          ? error.retryAfterSeconds * 1000 + 50
          : undefined,
    })
    this.observed = observe({
      client,
      types,
      keys,
      namespace,
      watchSecrets,
      ownsKinds,
      asksPods: readPod !== undefined,
      onChange: (type, before, after) => this.#onChange(type, before, after),
      onRestart: (kind, reason) => this.#series.restarts.with(kind, reason).add(),
      log,
    })
    for (const kind of this.observed.kinds)
      for (const reason of RESTART_REASONS) this.#series.restarts.with(kind, reason).add(0)
    this.#reports =
      readPod === undefined
        ? undefined
        : createPodReports({
            pods: () => this.observed.proxyPods(),
            read: readPod,
            isLeader: () => options.isLeader(),
            onChange: (pod) => this.#onReport(pod),
            clock,
          })
    this.secretsOf = createSecretLookup(this.observed, settings.secretsByLabel)
    this.#planFor = createPlanner({
      observed: this.observed,
      references: this.#references,
      known: this.known,
      knownShared: this.knownShared,
      secretsOf: this.secretsOf,
      reportsOf: this.#reports?.of,
      types,
      settings,
      ownsKinds,
      writesStatus,
      onServices: (key, services) => {
        if (services.length > 0) this.#services.set(key, services)
        else this.#services.delete(key)
      },
      clock,
    })
  }

  start(): void {
    this.#isStarted = true
    const { observed } = this
    const addAll = (kind: ReconciledKind, objects: readonly KubeObject[]): void => {
      for (const { metadata } of objects) this.#queue.add(taskOf(kind, metadata.namespace ?? '', metadata.name))
    }
    addAll('MCPExternalAuthConfig', observed.configs())
    for (const kind of SHARED_KINDS) addAll(kind, observed.allShared(kind))
    for (const kind of REFERRING_KINDS) addAll(kind, observed.workloads(kind))
    this.#reports?.start()
  }

  async idle(): Promise<void> {
    await this.#queue.idle()
    await this.#executor.idle()
  }

  async close(): Promise<void> {
    this.#reports?.close()
    this.observed.close()
    await this.#queue.close()
    await this.#executor.idle()
  }

  async #work(key: string): Promise<number | undefined> {
    const { clock, isLeader } = this.#options
    if (!isLeader()) return undefined
    const { reconciles, depth, duration } = this.#series
    const startedMs = clock.now()
    const { kind } = partsOf(key)
    try {
      await this.#prepareMatchers(key)
      const plan = this.#planFor(key)
      if (plan === undefined) return undefined
      await this.#carryOut(key, plan)
      reconciles.with(kind, 'ok').add()
      return plan.requeueAfterMs
    } catch (error) {
      reconciles.with(kind, error instanceof KubeError && error.status === 409 ? 'conflict' : 'failed').add()
      throw error
    } finally {
      depth.set(this.#queue.depth)
      duration.with(kind).observe((clock.now() - startedMs) / 1000)
    }
  }

  /** Reports a rejected object in the status of its proxy. */
  async #carryOut(key: string, plan: Plan): Promise<void> {
    try {
      await this.#executor.run(plan)
    } catch (error) {
      const isOfProxy = partsOf(key).kind === 'MCPRemoteProxy'
      const report = error instanceof ApplyRefused && isOfProxy ? this.#planFor(key, error) : undefined
      if (report !== undefined) await this.#executor.run(report)
      throw error
    }
  }

  /** Validates large configs in small slices: they must not delay the lease and webhooks. */
  async #prepareMatchers(key: string): Promise<void> {
    const { kind, namespace, name } = partsOf(key)
    if (isShared(kind)) return
    const workload = kind === 'MCPExternalAuthConfig' ? undefined : this.observed.workload(kind, namespace, name)
    const names =
      kind === 'MCPExternalAuthConfig' || workload === undefined ? [name] : referencedConfigs(kind, workload)
    for (const one of names) {
      const config = this.observed.config(namespace, one)
      const validation = await this.known.prepare(config, { mostMs: MAX_VALIDATION_MS })
      if (validation !== 'done' && config !== undefined) this.known.giveUp(config)
    }
  }

  /** Events have low priority: while objects wait to be reconciled, few are written. */
  async #calm(): Promise<void> {
    const { clock, isLeader } = this.#options
    const endMs = clock.now() + MOST_WAIT_MS
    while (this.#queue.depth > 0 && isLeader() && clock.now() < endMs) await pause(WAIT_STEP_MS)
  }

  #onChange(type: ResourceType, before: KubeObject | undefined, after: KubeObject | undefined): void {
    this.#showReady?.(type, before, after)
    for (const key of touchedBy(type, before, after, this.#references)) this.#add(key)
    const { namespace = '' } = (after ?? before)?.metadata ?? {}
    if (type.kind === 'Namespace' && after !== undefined) {
      const isImageNew = imageIn(after) !== imageIn(before)
      if (isImageNew || after.metadata.deletionTimestamp !== undefined) this.#addNamespace(after.metadata.name)
    }
    const service = after ?? before
    if (
      type.kind === 'Service' &&
      service !== undefined &&
      JSON.stringify(before?.spec) !== JSON.stringify(after?.spec)
    )
      this.#addServiceUsers(service)
    const isOther = before === undefined || after === undefined || isUsable(before) !== isUsable(after)
    if (type.kind === 'Secret' && isOther) this.#addNamespace(namespace)
  }

  #onReport({ namespace, instance }: ReportingPod): void {
    for (const { metadata } of this.observed.workloads('MCPRemoteProxy'))
      if (metadata.namespace === namespace && instanceName(metadata.name) === instance)
        this.#add(taskOf('MCPRemoteProxy', namespace, metadata.name))
  }

  #add(key: string): void {
    // Reconciliation waits for leadership and for all collections: without its workloads, a config would seem
    // unreferenced. `start` adds everything then.
    if (!this.#isStarted) return
    this.#queue.add(key)
    this.#series.depth.set(this.#queue.depth)
  }

  #addServiceUsers({ metadata: { namespace = '', name } }: KubeObject): void {
    for (const [key, services] of this.#services) if (services.includes(`${namespace}/${name}`)) this.#add(key)
  }

  #addNamespace(namespace: string): void {
    const addThose = (kind: ReconciledKind, objects: readonly KubeObject[]): void => {
      for (const { metadata } of objects)
        if (metadata.namespace === namespace) this.#add(taskOf(kind, namespace, metadata.name))
    }
    addThose('MCPExternalAuthConfig', this.observed.configs())
    for (const kind of SHARED_KINDS) addThose(kind, this.observed.allShared(kind))
    addThose('MCPRemoteProxy', this.observed.workloads('MCPRemoteProxy'))
  }
}
