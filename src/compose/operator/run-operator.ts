import { hostname } from 'node:os'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { parse } from 'yaml'
import { causeOf, Failure, type Log } from '../../core/index.ts'
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
    await using opening = new AsyncDisposableStack()
    return await start(options, opening)
  } catch (error) {
    if (!(error instanceof KubeError)) throw error
    throw new Failure('config_error', { detail: error.message, cause: error })
  }
}

/** What it opens is on `opening` until it returns: a failure closes it. */
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
  /** A cluster that restarts may run this pod before its API server answers: the process waits, healthy and not ready. */
  const read = <T>(what: string, attempt: () => Promise<T>): Promise<T | undefined> =>
    retryUntilAnswered(attempt, {
      signal: stop.signal,
      onFailure(error, failures) {
        waitsFor = `${what}: ${error.status === 0 ? 'no answer from the API server' : `${error.status} ${error.reason}`}`
        const level = failures === 1 ? 'warn' : 'debug'
        log[level]({ what, status: error.status, cause: causeOf(error) }, 'cannot be read yet, trying again')
      },
    })
  const isOurs = apiGroup === DEFAULT_API_GROUP
  const startWhenAnswered = async (): Promise<void> => {
    const { client } = connection
    const image = await read('the image', () => imageFor(options, client, ownNamespace))
    // Definitions of our own group come with this version; those of another are as old as the operator that they belong to.
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
        // After the lease is lost nothing may be written: requests to the API server are aborted.
        if (what === 'lease') void connection.close()
        lost.resolve('lost')
      },
      clock: { now: () => Date.now() },
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

/** What a pod answers, whatever its status. Pods are in the cluster: no egress proxy is between. */
async function readPod(url: string): Promise<unknown> {
  const timeouts = { connect: POD_ANSWER_MS, firstByte: POD_ANSWER_MS, idle: POD_ANSWER_MS }
  const { body } = await requestOnce(
    { origin: new URL(url).origin, timeouts, http2: false },
    { method: 'GET', url, headers: {} },
    { maxBytes: POD_ANSWER_BYTES, deadlineMs: POD_ANSWER_MS },
  )
  return JSON.parse(body.toString()) as unknown
}

/** The image of proxies and sidecars: the one that is set, else that of the operator's own pod. Throws `KubeError`. */
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

/** Which cluster: the one that this pod is in, or that of a kubeconfig. */
interface ClusterChoice {
  readonly kubeconfig: string | undefined
  /** Context of the kubeconfig. Default: its current one. */
  readonly context: string | undefined
}

/** Where the API server is and who we are. Throws `UsageError` where nothing says so, `KubeError` for a wrong kubeconfig. */
function kubeSettings({ kubeconfig, context }: ClusterChoice, env: Io['env']): KubeSettings {
  const file = kubeconfig ?? env['KUBECONFIG']
  const inCluster = kubeconfig === undefined ? inClusterSettings(env) : undefined
  if (inCluster !== undefined) return inCluster
  if (file === undefined || file === '')
    throw new UsageError('is not in a cluster: name one with --kubeconfig FILE, or KUBECONFIG')
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch {
    throw new UsageError(`cannot read the kubeconfig ${file}`)
  }
  return readKubeconfig(parse(text), path.resolve(file), context)
}
