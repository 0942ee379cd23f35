import { causeOf, type Clock, Failure, type Log } from '../core/index.ts'
import { OLDEST_VERSION } from '../load/index.ts'
import { createInformer, electLeader, type Informer, type KubeClient } from '../kube/index.ts'
import { type Controller, createController } from './controller.ts'
import { CLUSTER_TYPES, ownTypes } from './kinds.ts'
import type { OperatorMetrics } from './object-series.ts'
import type { PodSettings } from './pod-settings.ts'
import { podKeys } from './references.ts'
import type { Certificate } from './webhook/certificates.ts'
import { certificateEnds, type CertificateKeeper, keepCertificate } from './webhook/certificate-keeper.ts'
import { createDecisions } from './webhook/decisions.ts'
import { startWebhookServer, type WebhookServer } from './webhook/server.ts'

export interface OperatorOptions {
  readonly client: KubeClient
  readonly apiGroup: string
  /** Watches this namespace only; absent: all. */
  readonly namespace?: string | undefined
  /** Where the operator itself runs: Lease and certificate. */
  readonly ownNamespace: string
  /** Tells replicas and starts apart. */
  readonly identity: string
  /** Image of proxies and sidecars. */
  readonly image: string
  readonly watchSecrets: boolean
  readonly restrictPodTemplate: boolean
  /** Only Secrets with the label may be named; goes with `watchSecrets`. */
  readonly secretsByLabel: boolean
  /** Of the cluster that pods run in. Default: as most clusters are. */
  readonly pods?: PodSettings | undefined
  /** Of our kinds. Default: the one that each release of the definitions serves. */
  readonly version?: string | undefined
  /** False beside another operator of the same group. */
  readonly ownsKinds: boolean
  readonly writesStatus: boolean
  /** Undefined: no webhooks. */
  readonly webhook: WebhookOptions | undefined
  /** Leadership was lost for good, or webhooks cannot be served: the process has to end. */
  readonly onLost: (what: 'lease' | 'webhook') => void
  readonly clock: Clock
  readonly log: Log
  readonly metrics: OperatorMetrics
}

export interface WebhookOptions {
  /** `host:port`. */
  readonly address: string
  /** Names that the API server asks under: those of the Service, or an address. */
  readonly names: readonly string[]
  readonly lifetimeMs?: number | undefined
  /** Milliseconds that reviews are answered after `close`; see `WebhookServerOptions`. */
  readonly leaveMs?: number | undefined
  /** A certificate from files (cert-manager) instead of a self-made one. */
  readonly files?: { current(): Certificate | undefined; onChange(listener: () => void): () => void } | undefined
}

export interface Operator {
  readonly isLeader: boolean
  /** Undefined without webhooks. */
  readonly webhookPort: number | undefined
  readiness(): { readonly ok: boolean; readonly detail: object }
  /** Resolves when all collections were read. */
  readonly synced: Promise<void>
  idle(): Promise<void>
  /** Lets go of leadership, so that another replica goes on within seconds. */
  close(): Promise<void>
}

export const NAMES = { lease: 'extauth-operator', secret: 'extauth-webhook-certificate', webhooks: 'extauth' } as const

/** Controller and webhooks in one process; every replica answers webhooks, the leader acts (kubernetes.md §1). */
export function startOperator(options: OperatorOptions): Operator {
  const { client, apiGroup, clock, log, metrics } = options
  const types = ownTypes(apiGroup, options.version ?? OLDEST_VERSION)
  const keys = podKeys(apiGroup)
  const leads = metrics.gauge('extauth_operator_leader', '1 while this replica acts.').with()
  leads.set(0)
  let isLeader = false
  const controller: Controller = createController({
    client,
    types,
    settings: {
      apiGroup,
      image: options.image,
      restrictPodTemplate: options.restrictPodTemplate,
      secretsByLabel: options.secretsByLabel,
      pods: options.pods,
    },
    namespace: options.namespace,
    watchSecrets: options.watchSecrets,
    ownsKinds: options.ownsKinds,
    writesStatus: options.writesStatus,
    isLeader: () => isLeader && election.isLeader,
    instance: options.identity,
    clock,
    log,
    metrics,
  })
  const { observed } = controller

  const decisions = {
    ...createDecisions({ ...options, types, keys, controller }),
    log,
    metrics,
    now: () => clock.now(),
  }
  let webhook: WebhookServer | undefined
  let served: Certificate | undefined
  let keeper: CertificateKeeper | undefined
  let stopFollowing = (): void => {}
  let configurations: readonly Informer[] = []
  let isClosed = false
  let starting: Promise<void> = Promise.resolve()
  /** Serves with this certificate from now on; the first one starts the server. */
  const serve = (certificate: Certificate, { address, leaveMs }: WebhookOptions): void => {
    starting = serveNext(starting, certificate, { address, leaveMs })
  }
  const serveNext = async (
    before: Promise<void>,
    certificate: Certificate,
    place: { readonly address: string; readonly leaveMs: number | undefined },
  ): Promise<void> => {
    await before
    if (isClosed) return
    try {
      if (webhook === undefined) webhook = await startWebhookServer({ ...decisions, ...place, certificate })
      else webhook.use(certificate)
      served = certificate
    } catch (error) {
      const detail = error instanceof Failure ? error.detail : undefined
      log.error({ cause: causeOf(error), detail }, 'the webhook cannot be served')
      options.onLost('webhook')
    }
  }
  /** A replica that knows no configs would refuse pods for it: webhooks wait for the caches. */
  const startWebhooks = async (wanted: WebhookOptions): Promise<void> => {
    await observed.synced
    if (isClosed) return
    const { files } = wanted
    if (files === undefined) {
      keeper = await keepCertificate({
        client,
        namespace: options.ownNamespace,
        secretName: NAMES.secret,
        configurationName: NAMES.webhooks,
        names: wanted.names,
        lifetimeMs: wanted.lifetimeMs,
        isLeader: () => isLeader && election.isLeader,
        onCertificate: (certificate) => serve(certificate, wanted),
        clock,
        log,
        metrics,
      })
      if (!isClosed) configurations = followConfigurations()
      return
    }
    const ends = certificateEnds(metrics)
    const follow = (): void => {
      const certificate = files.current()
      if (certificate === undefined) return
      ends.set(Math.round(certificate.notAfterMs / 1000))
      serve(certificate, wanted)
    }
    stopFollowing = files.onChange(follow)
    follow()
  }

  /** Who applies the manifests anew may take the CA away: it is put back when that is seen, not at the next look. */
  const followConfigurations = (): Informer[] =>
    [CLUSTER_TYPES.ValidatingWebhookConfiguration, CLUSTER_TYPES.MutatingWebhookConfiguration].map((type) =>
      createInformer({
        client,
        type,
        // The right to follow is for this name only.
        selection: { fieldSelector: `metadata.name=${NAMES.webhooks}` },
        onChange: (_key, _before, after) => {
          if (after !== undefined && isLeader && !isClosed) void keeper?.look()
        },
        log,
      }),
    )

  const election = electLeader({
    client,
    namespace: options.ownNamespace,
    name: NAMES.lease,
    identity: options.identity,
    onAcquired: () => {
      isLeader = true
      leads.set(1)
      void keeper?.look()
      void observed.synced.then(() => controller.start())
    },
    onLost: () => {
      isLeader = false
      leads.set(0)
      options.onLost('lease')
    },
    log,
  })

  const close = async (): Promise<void> => {
    isClosed = true
    keeper?.close()
    for (const configuration of configurations) configuration.close()
    stopFollowing()
    isLeader = false
    await controller.close()
    await election.release()
    await starting
    await webhook?.close()
  }
  if (options.webhook !== undefined) void startWebhooks(options.webhook)

  return {
    get isLeader() {
      return election.isLeader
    },
    get webhookPort() {
      return webhook?.port
    },
    readiness() {
      const unsynced = observed.problems()
      const nowMs = clock.now()
      const isServing = served !== undefined && nowMs >= served.notBeforeMs && nowMs < served.notAfterMs
      return {
        // Who is about to end gets no new reviews.
        ok: unsynced.length === 0 && (isServing || options.webhook === undefined) && !isClosed,
        detail: {
          leader: election.isLeader,
          caches: unsynced,
          webhook: options.webhook === undefined ? 'off' : isServing ? 'serving' : 'no valid certificate',
        },
      }
    },
    synced: observed.synced,
    idle: () => controller.idle(),
    close,
  }
}
