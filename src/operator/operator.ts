import { causeOf, type Clock, Failure, type Log } from '../core/index.ts'
import { OLDEST_VERSION } from '../load/index.ts'
import { createInformer, electLeader, type Informer, type KubeClient, type LeaderElection } from '../kube/index.ts'
import { type Controller, createController } from './controller.ts'
import { CLUSTER_TYPES, type OwnTypes, ownTypes } from './kinds.ts'
import type { OperatorMetrics } from './object-series.ts'
import { DEFAULT_POD_SETTINGS, type PodSettings } from './pod-settings.ts'
import { podKeys } from './references.ts'
import type { Certificate } from './webhook/certificates.ts'
import { certificateEnds, type CertificateKeeper, keepCertificate } from './webhook/certificate-keeper.ts'
import { createDecisions } from './webhook/decisions.ts'
import { startWebhookServer, type WebhookServer, type WebhookServerOptions } from './webhook/server.ts'

export interface OperatorOptions {
  readonly client: KubeClient
  readonly apiGroup: string
  /** Watches only this namespace; absent: all. */
  readonly namespace?: string | undefined
  /** The namespace of the operator itself, with its Lease and certificate. */
  readonly ownNamespace: string
  /** Unique per replica and start. */
  readonly identity: string
  /** Image of proxies and sidecars. */
  readonly image: string
  readonly watchSecrets: boolean
  readonly restrictPodTemplate: boolean
  /** Only Secrets with the label may be referenced; requires `watchSecrets`. */
  readonly secretsByLabel: boolean
  /** Properties of the cluster for pods. Default: those of most clusters. */
  readonly pods?: PodSettings | undefined
  /** Version of the supported kinds. Default: the one that every release of the definitions serves. */
  readonly version?: string | undefined
  /** False beside another operator of the same group. */
  readonly ownsKinds: boolean
  readonly writesStatus: boolean
  /** Reads `/readiness` of a pod as JSON, with limits; absent: pods are not polled. */
  readonly readPod?: ((url: string) => Promise<unknown>) | undefined
  /** Undefined: no webhooks. */
  readonly webhook: WebhookOptions | undefined
  /** Leadership was lost permanently, or webhooks cannot be served: the process must exit. */
  readonly onLost: (what: 'lease' | 'webhook') => void
  readonly clock: Clock
  readonly log: Log
  readonly metrics: OperatorMetrics
}

export interface WebhookOptions {
  /** `host:port`. */
  readonly address: string
  /** Names that the API server connects to: those of the Service, or an address. */
  readonly names: readonly string[]
  readonly lifetimeMs?: number | undefined
  /** Milliseconds of continued serving after `close`; see `WebhookServerOptions`. */
  readonly leaveMs?: number | undefined
  /** A certificate from files (cert-manager) instead of a self-signed one. */
  readonly files?: { current(): Certificate | undefined; onChange(listener: () => void): () => void } | undefined
}

export interface Operator {
  readonly isLeader: boolean
  /** Undefined without webhooks. */
  readonly webhookPort: number | undefined
  readiness(): { readonly ok: boolean; readonly detail: object }
  /** Resolves when all collections are synced. */
  readonly synced: Promise<void>
  idle(): Promise<void>
  /** Releases leadership, so that another replica takes over within seconds. */
  close(): Promise<void>
}

export const NAMES = { lease: 'extauth-operator', secret: 'extauth-webhook-certificate', webhooks: 'extauth' } as const

/**
 * Runs controller and webhooks in one process; every replica serves webhooks, the leader reconciles (kubernetes.md
 * §1).
 */
export const startOperator = (options: OperatorOptions): Operator => new RunningOperator(options)

class RunningOperator implements Operator {
  readonly #options: OperatorOptions
  readonly #controller: Controller
  readonly #election: LeaderElection
  readonly #webhooks: Webhooks | undefined
  /** False immediately after close; the election is updated later. */
  #leads = false
  #isClosed = false

  constructor(options: OperatorOptions) {
    const { client, apiGroup, log, metrics, webhook } = options
    const gauge = metrics.gauge('extauth_operator_leader', '1 while this replica acts.').with()
    gauge.set(0)
    const mayAct = (): boolean => this.#leads && this.#election.isLeader
    const types = ownTypes(apiGroup, options.version ?? OLDEST_VERSION)
    const { image, restrictPodTemplate, secretsByLabel } = options
    const pods =
      options.readPod === undefined
        ? options.pods
        : { ...(options.pods ?? DEFAULT_POD_SETTINGS), operatorNamespace: options.ownNamespace }
    this.#options = options
    this.#controller = createController({
      ...options,
      namespace: options.namespace,
      types,
      settings: { apiGroup, image, restrictPodTemplate, secretsByLabel, pods },
      isLeader: mayAct,
      instance: options.identity,
    })
    this.#election = electLeader({
      client,
      namespace: options.ownNamespace,
      name: NAMES.lease,
      identity: options.identity,
      onAcquired: () => {
        this.#leads = true
        gauge.set(1)
        this.#webhooks?.look()
        void this.synced.then(() => this.#controller.start())
      },
      onLost: () => {
        this.#leads = false
        gauge.set(0)
        options.onLost('lease')
      },
      log,
    })
    this.#webhooks = webhook && new Webhooks(webhook, options, types, this.#controller, mayAct)
  }

  get isLeader(): boolean {
    return this.#election.isLeader
  }

  get webhookPort(): number | undefined {
    return this.#webhooks?.port
  }

  get synced(): Promise<void> {
    return this.#controller.observed.synced
  }

  readiness(): ReturnType<Operator['readiness']> {
    const unsynced = this.#controller.observed.problems()
    const isServing = this.#webhooks?.isServing(this.#options.clock.now())
    return {
      // Not ready while shutting down: no new reviews.
      ok: unsynced.length === 0 && isServing !== false && !this.#isClosed,
      detail: {
        leader: this.isLeader,
        caches: unsynced,
        webhook: isServing === undefined ? 'off' : isServing ? 'serving' : 'no valid certificate',
      },
    }
  }

  idle(): Promise<void> {
    return this.#controller.idle()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#webhooks?.stopFollowing()
    this.#leads = false
    await this.#controller.close()
    await this.#election.release()
    await this.#webhooks?.close()
  }
}

/** The webhook server, its certificate and its configurations in the cluster. */
class Webhooks {
  readonly #wanted: WebhookOptions
  readonly #options: OperatorOptions
  readonly #controller: Controller
  readonly #mayAct: () => boolean
  readonly #decisions: Omit<WebhookServerOptions, 'address' | 'leaveMs' | 'certificate'>
  #server: WebhookServer | undefined
  #served: Certificate | undefined
  #keeper: CertificateKeeper | undefined
  #stopFiles = (): void => {}
  #configurations: readonly Informer[] = []
  #isClosed = false
  #starting: Promise<void> = Promise.resolve()

  constructor(
    wanted: WebhookOptions,
    options: OperatorOptions,
    types: OwnTypes,
    controller: Controller,
    mayAct: () => boolean,
  ) {
    const { apiGroup, clock, log, metrics } = options
    this.#wanted = wanted
    this.#options = options
    this.#controller = controller
    this.#mayAct = mayAct
    const decisions = createDecisions({ ...options, types, keys: podKeys(apiGroup), controller })
    this.#decisions = { ...decisions, log, metrics, now: () => clock.now() }
    void this.#start()
  }

  get port(): number | undefined {
    return this.#server?.port
  }

  /** Whether reviews are served with a certificate that is valid now. */
  isServing(nowMs: number): boolean {
    const served = this.#served
    return served !== undefined && nowMs >= served.notBeforeMs && nowMs < served.notAfterMs
  }

  /** Renews the certificate, or restores its CA in the configurations, where needed. */
  look(): void {
    void this.#keeper?.look()
  }

  stopFollowing(): void {
    this.#isClosed = true
    this.#keeper?.close()
    for (const configuration of this.#configurations) configuration.close()
    this.#stopFiles()
  }

  async close(): Promise<void> {
    await this.#starting
    await this.#server?.close()
  }

  /** A replica without synced caches would reject pods for it: webhooks wait for the caches. */
  async #start(): Promise<void> {
    await this.#controller.observed.synced
    if (this.#isClosed) return
    const { files } = this.#wanted
    return files === undefined ? this.#keep() : this.#follow(files)
  }

  async #keep(): Promise<void> {
    const { client, ownNamespace, clock, log, metrics } = this.#options
    const { names, lifetimeMs } = this.#wanted
    this.#keeper = await keepCertificate({
      client,
      namespace: ownNamespace,
      secretName: NAMES.secret,
      configurationName: NAMES.webhooks,
      names,
      lifetimeMs,
      isLeader: this.#mayAct,
      onCertificate: (certificate) => this.#serve(certificate),
      clock,
      log,
      metrics,
    })
    if (!this.#isClosed) this.#configurations = this.#followConfigurations()
  }

  #follow(files: NonNullable<WebhookOptions['files']>): void {
    const ends = certificateEnds(this.#options.metrics)
    const follow = (): void => {
      const certificate = files.current()
      if (certificate === undefined) return
      ends.set(Math.round(certificate.notAfterMs / 1000))
      this.#serve(certificate)
    }
    this.#stopFiles = files.onChange(follow)
    follow()
  }

  /** Reapplied manifests may remove the CA: it is restored immediately, not at the next renewal. */
  #followConfigurations(): Informer[] {
    const { client, log } = this.#options
    return [CLUSTER_TYPES.ValidatingWebhookConfiguration, CLUSTER_TYPES.MutatingWebhookConfiguration].map((type) =>
      createInformer({
        client,
        type,
        // The permission to watch is for this name only.
        selection: { fieldSelector: `metadata.name=${NAMES.webhooks}` },
        onChange: (_key, _before, after) => {
          if (after !== undefined && this.#mayAct() && !this.#isClosed) this.look()
        },
        log,
      }),
    )
  }

  /** Serves this certificate from now on; the first one starts the server. */
  #serve(certificate: Certificate): void {
    this.#starting = this.#starting.then(() => this.#use(certificate))
  }

  async #use(certificate: Certificate): Promise<void> {
    if (this.#isClosed) return
    const { address, leaveMs } = this.#wanted
    try {
      if (this.#server === undefined)
        this.#server = await startWebhookServer({ ...this.#decisions, address, leaveMs, certificate })
      else this.#server.use(certificate)
      this.#served = certificate
    } catch (error) {
      const detail = error instanceof Failure ? error.detail : undefined
      this.#options.log.error({ cause: causeOf(error), detail }, 'the webhook cannot be served')
      this.#options.onLost('webhook')
    }
  }
}
