import { hostname } from 'node:os'
import { randomBytes } from 'node:crypto'
import { Failure, type Log } from '../../core/index.ts'
import { KubeError, openKubeConnection } from '../../kube/index.ts'
import { DEFAULT_API_GROUP } from '../../load/index.ts'
import {
  imageOfPod,
  type OperatorOptions,
  servedVersion,
  startOperator,
  type WebhookOptions,
} from '../../operator/index.ts'
import { startOps } from '../../ops/index.ts'
import { openMetrics } from '../../report/index.ts'
import { type Closers, whole } from '../closers.ts'
import type { Io } from '../io.ts'
import { VERSION } from '../version.ts'
import { type ClusterChoice, kubeSettings } from './kube-settings.ts'
import { followPair } from './webhook-pair.ts'

export interface RunOperatorOptions {
  readonly apiGroup: string
  /** Watches this namespace only. Default: all. */
  readonly namespace: string | undefined
  /** Where Lease and certificate are. Default: the pod's own. */
  readonly ownNamespace: string | undefined
  /** Of proxies and sidecars. Default: that of `podName`, or the one of this version. */
  readonly image: string | undefined
  /** The operator's own pod. */
  readonly podName: string | undefined
  readonly pods: OperatorOptions['pods']
  readonly watchSecrets: boolean
  readonly restrictPodTemplate: boolean
  readonly secretsByLabel: boolean
  /** Writes conditions in a group of another operator too. */
  readonly writesStatus: boolean
  /** Undefined: no webhooks are served. */
  readonly webhook: WebhookChoice | undefined
  /** Where health, readiness and metrics are. */
  readonly admin: string
  readonly cluster: ClusterChoice
  readonly env: Io['env']
  readonly log: Log
}

/** What is said of the webhooks. */
export interface WebhookChoice {
  readonly address: string
  /** The Service in front of it. */
  readonly service: string
  /** More names in the certificate that it makes. */
  readonly names: readonly string[]
  /** Milliseconds of the certificate that it makes. */
  readonly lifetimeMs: number | undefined
  /** `tls.crt` and `tls.key` of somebody else instead. */
  readonly certificateDirectory: string | undefined
}

/** An operator that runs. */
export interface RunningOperator {
  /** Resolves when another replica has taken over, or its webhooks can't go on: it must be started anew. */
  readonly lost: Promise<'lost'>
  close(): Promise<void>
}

/** Starts the operator. Throws `UsageError` where nothing says which cluster, and a `Failure` that says what is in the way. */
export async function runOperator(options: RunOperatorOptions): Promise<RunningOperator> {
  try {
    return await whole((closers) => start(options, closers))
  } catch (error) {
    if (!(error instanceof KubeError)) throw error
    throw new Failure('config_error', { detail: error.message, cause: error })
  }
}

async function start(options: RunOperatorOptions, closers: Closers): Promise<RunningOperator> {
  const { apiGroup, namespace, log, webhook } = options
  const settings = kubeSettings(options.cluster, options.env)
  const ownNamespace = options.ownNamespace ?? settings.namespace
  const lost = Promise.withResolvers<'lost'>()
  const metrics = openMetrics()
  const connection = openKubeConnection({
    settings,
    fieldManager: 'extauth-operator',
    userAgent: `extauth-operator/${VERSION}`,
    log,
  })
  closers.keep(connection)
  const { image: wanted, podName } = options
  const image =
    wanted ??
    (podName === undefined ? `mcp-extauth:${VERSION}` : await imageOfPod(connection.client, ownNamespace, podName))
  const isOurs = apiGroup === DEFAULT_API_GROUP
  // Definitions of our own group come with this version; those of another are as old as the operator that they belong to.
  const version = isOurs ? undefined : await servedVersion(connection.client, apiGroup, namespace)
  const operator = startOperator({
    client: connection.client,
    apiGroup,
    version,
    namespace,
    ownNamespace,
    identity: `${hostname()}_${randomBytes(4).toString('hex')}`,
    image,
    watchSecrets: options.watchSecrets,
    restrictPodTemplate: options.restrictPodTemplate,
    secretsByLabel: options.secretsByLabel,
    pods: options.pods,
    ownsKinds: isOurs,
    writesStatus: isOurs || options.writesStatus,
    webhook: webhook && webhookOptions(webhook, ownNamespace, log, closers),
    onLost: (what) => {
      // Who has lost the lease must not write any more: what is on its way to the API server is cut off.
      if (what === 'lease') void connection.close()
      lost.resolve('lost')
    },
    clock: { now: () => Date.now() },
    log,
    metrics,
  })
  closers.keep(operator)
  const ops = await startOps({
    address: options.admin,
    version: VERSION,
    readiness: () => operator.readiness(),
    metrics: () => metrics.render(),
    log,
  })
  const { restrictPodTemplate, secretsByLabel } = options
  const tenants = { restrictPodTemplate, secretsByLabel }
  log.info({ admin: ops.url, apiGroup, namespace, ...tenants, version: VERSION }, 'listening')
  return {
    lost: lost.promise,
    close: async () => {
      try {
        await closers.close()
      } finally {
        await ops.close()
      }
    },
  }
}

function webhookOptions(
  { address, service, names, lifetimeMs, certificateDirectory }: WebhookChoice,
  namespace: string,
  log: Log,
  closers: Closers,
): WebhookOptions {
  return {
    address,
    names: [`${service}.${namespace}.svc`, `${service}.${namespace}.svc.cluster.local`, ...names],
    lifetimeMs,
    files: certificateDirectory === undefined ? undefined : followPair(certificateDirectory, log, closers),
  }
}
