import { hostname } from 'node:os'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { parse } from 'yaml'
import { causeOf, Failure, type Log, SYSTEM_CLOCK } from '../../core/index.ts'
import {
  inClusterSettings,
  type KubeClient,
  KubeError,
  type KubeSettings,
  openKubeConnection,
  readKubeconfig,
  retryUntilAnswered,
} from '../../kube/index.ts'
import { DEFAULT_API_GROUP, OLDEST_VERSION } from '../../load/index.ts'
import {
  imageOfPod,
  type Operator,
  type OperatorOptions,
  servedVersion,
  startOperator,
  type WebhookOptions,
} from '../../operator/index.ts'
import { requestOnce } from '../../net/index.ts'
import { startOps } from '../../ops/index.ts'
import { openMetrics } from '../../report/index.ts'
import { type Io, UsageError } from '../io.ts'
import { IMAGE, VERSION } from '../version.ts'
import { followPair } from './webhook-pair.ts'

export interface RunOperatorOptions {
  readonly apiGroup: string
  /** Watches only this namespace. Default: all. */
  readonly namespace: string | undefined
  /** Namespace of Lease and certificate. Default: the pod's own. */
  readonly ownNamespace: string | undefined
  /** Image of proxies and sidecars. Default: the image of `podName`, else the one of this version. */
  readonly image: string | undefined
  /** Name of the operator's own pod. */
  readonly podName: string | undefined
  readonly pods: OperatorOptions['pods']
  readonly watchSecrets: boolean
  readonly restrictPodTemplate: boolean
  readonly secretsByLabel: boolean
  /** Writes status conditions even if the API group belongs to another operator. */
  readonly writesStatus: boolean
  /** Default: webhooks are not served. */
  readonly webhook: WebhookChoice | undefined
  /** Listen address for health, readiness and metrics. */
  readonly admin: string
  readonly cluster: ClusterChoice
  readonly env: Io['env']
  readonly log: Log
}

/** Webhook options. */
export interface WebhookChoice {
  readonly address: string
  /** Name of the Service in front of the webhooks. */
  readonly service: string
  /** Additional DNS names in the generated certificate. */
  readonly names: readonly string[]
  /** Lifetime of the generated certificate in milliseconds. */
  readonly lifetimeMs: number | undefined
  /** Directory with an externally issued `tls.crt` and `tls.key`; no certificate is generated. */
  readonly certificateDirectory: string | undefined
}

/** A running operator. */
export interface RunningOperator {
  /** Resolves when another replica holds the lease or the webhooks fail; the process must be restarted. */
  readonly lost: Promise<'lost'>
  close(): Promise<void>
}

/** Starts the operator. Throws `UsageError` if no cluster is configured, and `Failure` with the cause of a failed start. */
export async function runOperator(options: RunOperatorOptions): Promise<RunningOperator> {
  try {
    await using opening = new AsyncDisposableStack()
    return await start(options, opening)
  } catch (error) {
    if (!(error instanceof KubeError)) throw error
    throw new Failure('config_error', { detail: error.message, cause: error })
  }
}

/** `opening` owns the parts until this returns, so that a failure closes them. */
async function start(options: RunOperatorOptions, opening: AsyncDisposableStack): Promise<RunningOperator> {
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
  opening.defer(() => connection.close())
  let operator: Operator | undefined
  let waitsFor = 'the API server'
  const ops = await startOps({
    address: options.admin,
    version: VERSION,
    readiness: () => operator?.readiness() ?? { ok: false, detail: { waitsFor } },
    metrics: () => metrics.render(),
    log,
  })
  const { restrictPodTemplate, secretsByLabel } = options
  const tenants = { restrictPodTemplate, secretsByLabel }
  log.info({ admin: ops.url, apiGroup, namespace, ...tenants, version: VERSION }, 'listening')

  const opened = opening.move()
  const stop = new AbortController()
  /** After a cluster restart the API server may not respond yet: the operator retries, healthy and not ready. */
  const read = <T>(what: string, attempt: () => Promise<T>): Promise<T | undefined> =>
    retryUntilAnswered(attempt, {
      signal: stop.signal,
      onFailure(error, failures) {
        waitsFor = `${what}: ${error.status === 0 ? 'no answer from the API server' : `${error.status} ${error.reason}`}`
        const level = failures === 1 ? 'warn' : 'debug'
        log[level]({ what, status: error.status, cause: causeOf(error) }, 'cannot read from the API server, retrying')
      },
    })
  const isOurs = apiGroup === DEFAULT_API_GROUP
  const startWhenAnswered = async (): Promise<void> => {
    const { client } = connection
    const image = await read('the image', () => imageFor(options, client, ownNamespace))
    // The project's own definitions match this version; those of another group have the version of their operator.
    const version = isOurs
      ? OLDEST_VERSION
      : await read('the version of the resources', () => servedVersion(client, apiGroup, namespace))
    if (image === undefined || version === undefined || stop.signal.aborted) return
    operator = startOperator({
      client,
      apiGroup,
      version,
      namespace,
      ownNamespace,
      identity: `${hostname()}_${randomBytes(4).toString('hex')}`,
      image,
      watchSecrets: options.watchSecrets,
      restrictPodTemplate,
      secretsByLabel,
      pods: options.pods,
      readPod,
      ownsKinds: isOurs,
      writesStatus: isOurs || options.writesStatus,
      webhook: webhook && webhookOptions(webhook, ownNamespace, log, opened),
      onLost: (what) => {
        // Nothing may be written without the lease: requests to the API server are aborted.
        if (what === 'lease') void connection.close()
        lost.resolve('lost')
      },
      clock: SYSTEM_CLOCK,
      log,
      metrics,
    })
    opened.adopt(operator, (running) => running.close())
  }
  const started = startWhenAnswered().catch(lost.reject)
  return {
    lost: lost.promise,
    close: async () => {
      stop.abort()
      await started
      try {
        await opened.disposeAsync()
      } finally {
        await ops.close()
      }
    },
  }
}

const POD_ANSWER_BYTES = 16 * 1024
const POD_ANSWER_MS = 2_000

/** Reads the JSON response of a pod, with any status. Requests in the cluster bypass the egress proxy. */
async function readPod(url: string): Promise<unknown> {
  const timeouts = { connect: POD_ANSWER_MS, firstByte: POD_ANSWER_MS, idle: POD_ANSWER_MS }
  const { body } = await requestOnce(
    { origin: new URL(url).origin, timeouts, http2: false },
    { method: 'GET', url, headers: {} },
    { maxBytes: POD_ANSWER_BYTES, deadlineMs: POD_ANSWER_MS },
  )
  return JSON.parse(body.toString()) as unknown
}

/** Image of proxies and sidecars: the configured one, else that of the operator's own pod. Throws `KubeError`. */
async function imageFor(
  { image, podName }: RunOperatorOptions,
  client: KubeClient,
  namespace: string,
): Promise<string> {
  if (image !== undefined) return image
  return podName === undefined ? IMAGE : imageOfPod(client, namespace, podName)
}

function webhookOptions(
  { address, service, names, lifetimeMs, certificateDirectory }: WebhookChoice,
  namespace: string,
  log: Log,
  stack: AsyncDisposableStack,
): WebhookOptions {
  return {
    address,
    names: [`${service}.${namespace}.svc`, `${service}.${namespace}.svc.cluster.local`, ...names],
    lifetimeMs,
    files: certificateDirectory === undefined ? undefined : followPair(certificateDirectory, log, stack),
  }
}

/** Selects the cluster: the pod's own, or that of a kubeconfig. */
interface ClusterChoice {
  readonly kubeconfig: string | undefined
  /** Context of the kubeconfig. Default: its current context. */
  readonly context: string | undefined
}

/** API server address and credentials. Throws `UsageError` if no cluster is configured, `KubeError` for an invalid kubeconfig. */
function kubeSettings({ kubeconfig, context }: ClusterChoice, env: Io['env']): KubeSettings {
  const file = kubeconfig ?? env['KUBECONFIG']
  const inCluster = kubeconfig === undefined ? inClusterSettings(env) : undefined
  if (inCluster !== undefined) return inCluster
  if (file === undefined || file === '') throw new UsageError('not in a cluster: set --kubeconfig FILE or KUBECONFIG')
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch {
    throw new UsageError(`cannot read the kubeconfig ${file}`)
  }
  return readKubeconfig(parse(text), path.resolve(file), context)
}
