import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import path from 'node:path'
import { randomBytes } from 'node:crypto'
import { parse } from 'yaml'
import { asFailure, type Log, Secret } from '../core/index.ts'
import { openWatchedFile } from '../files/index.ts'
import { inClusterSettings, KubeError, type KubeSettings, openKubeConnection, readKubeconfig } from '../kube/index.ts'
import {
  type Certificate,
  DEFAULT_POD_SETTINGS,
  type EgressRule,
  imageOfPod,
  readCertificate,
  readEgressRule,
  startOperator,
  type WebhookOptions,
} from '../operator/index.ts'
import { startOps } from '../ops/index.ts'
import { DEFAULT_API_GROUP } from '../load/index.ts'
import { parseGoDuration } from '../fields/index.ts'
import { type Closers, whole, EXIT, type Io, UsageError, VERSION, growYoungGeneration } from '../compose/index.ts'
import { openLogAsAsked } from './options/log-options.ts'
import { openMetrics } from '../report/index.ts'
import { OPERATOR_SPEC } from './operator-options.ts'
import { type Parsed, parseOptions, renderHelp } from './options/options.ts'

const MAX_PEM_BYTES = 1024 * 1024

/** `extauth operator`: runs until it is asked to stop, or another replica has taken over. */
export async function runOperatorCommand(argv: readonly string[], io: Io): Promise<number> {
  const options = parseOptions(OPERATOR_SPEC, argv, io.env)
  if (options === 'help') {
    io.stdout(renderHelp(OPERATOR_SPEC))
    return EXIT.fine
  }
  if (options.flag('secrets-by-label') && !options.flag('watch-secrets'))
    throw new UsageError('--secrets-by-label goes with --watch-secrets: labels can be seen only so')
  const { stop } = io
  const log = openLogAsAsked(options, 'info', io)
  try {
    const settings = settingsOf(options, io.env)
    const lost = Promise.withResolvers<'lost'>()
    const running = await whole((closers) =>
      start(options, settings, { log, closers, onLost: () => lost.resolve('lost') }),
    )
    growYoungGeneration()
    const ended = await Promise.race([stop, lost.promise])
    // Who has lost the lease must not write any more: the process ends and is started anew.
    log.info({ signal: ended }, 'stopping')
    await running.close()
    log.flush()
    return ended === 'lost' ? EXIT.failed : EXIT.fine
  } catch (error) {
    log.flush()
    if (error instanceof KubeError) io.stderr(`extauth operator: ${error.message}\n`)
    else if (asFailure(error).code === 'internal_error') throw error
    else io.stderr(`extauth operator: ${asFailure(error).detail ?? asFailure(error).code}\n`)
    return EXIT.failed
  }
}

function settingsOf(options: Parsed, env: Io['env']): KubeSettings {
  const file = options.text('kubeconfig') ?? env['KUBECONFIG']
  const inCluster = options.text('kubeconfig') === undefined ? inClusterSettings(env) : undefined
  if (inCluster !== undefined) return inCluster
  if (file === undefined || file === '')
    throw new UsageError('is not in a cluster: name one with --kubeconfig FILE, or KUBECONFIG')
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch {
    throw new UsageError(`cannot read the kubeconfig ${file}`)
  }
  return readKubeconfig(parse(text), path.resolve(file), options.text('context'))
}

interface Surroundings {
  readonly log: Log
  readonly closers: Closers
  readonly onLost: () => void
}

async function start(
  options: Parsed,
  settings: KubeSettings,
  { log, closers, onLost }: Surroundings,
): Promise<{ close(): Promise<void> }> {
  const apiGroup = options.text('api-group') ?? DEFAULT_API_GROUP
  const ownNamespace = options.text('operator-namespace') ?? settings.namespace
  const clock = { now: () => Date.now() }
  const metrics = openMetrics()
  const connection = openKubeConnection({
    settings,
    fieldManager: 'extauth-operator',
    userAgent: `extauth-operator/${VERSION}`,
    log,
  })
  closers.keep(connection)
  const giveUp = (what: 'lease' | 'webhook'): void => {
    // Somebody else may act soon: what is on its way to the API server is cut off.
    if (what === 'lease') void connection.close()
    onLost()
  }
  const isOurs = apiGroup === DEFAULT_API_GROUP
  const podName = options.text('pod-name')
  const image =
    options.text('image') ??
    (podName === undefined ? `mcp-extauth:${VERSION}` : await imageOfPod(connection.client, ownNamespace, podName))
  const operator = startOperator({
    client: connection.client,
    apiGroup,
    namespace: options.text('namespace'),
    ownNamespace,
    identity: `${hostname()}_${randomBytes(4).toString('hex')}`,
    image,
    watchSecrets: options.flag('watch-secrets'),
    restrictPodTemplate: options.flag('restrict-pod-template'),
    secretsByLabel: options.flag('secrets-by-label'),
    pods: {
      fixedUser: !options.flag('platform-user'),
      dns: egressOf(options, 'dns-egress') ?? DEFAULT_POD_SETTINGS.dns,
      apiServer: egressOf(options, 'api-server-egress'),
    },
    ownsKinds: isOurs,
    writesStatus: isOurs || options.flag('write-status'),
    webhook: webhookOf(options, ownNamespace, log, closers),
    onLost: giveUp,
    clock,
    log,
    metrics,
  })
  closers.keep(operator)
  const ops = await startOps({
    address: options.text('admin') ?? ':8081',
    version: VERSION,
    readiness: () => operator.readiness(),
    metrics: () => metrics.render(),
    log,
  })
  log.info({ admin: ops.url, apiGroup, namespace: options.text('namespace'), version: VERSION }, 'listening')
  return {
    close: async () => {
      try {
        await closers.close()
      } finally {
        await ops.close()
      }
    },
  }
}

function egressOf(options: Parsed, name: 'dns-egress' | 'api-server-egress'): EgressRule | undefined {
  const text = options.text(name)
  return text === undefined ? undefined : readEgressRule(text)
}

function webhookOf(options: Parsed, namespace: string, log: Log, closers: Closers): WebhookOptions | undefined {
  const address = options.text('webhook-address') ?? ':9443'
  if (address === 'off') return undefined
  const service = options.text('webhook-service') ?? 'extauth-operator'
  const lifetime = options.text('webhook-cert-lifetime')
  const directory = options.text('webhook-cert-dir')
  return {
    address,
    names: [
      `${service}.${namespace}.svc`,
      `${service}.${namespace}.svc.cluster.local`,
      ...options.list('webhook-names'),
    ],
    lifetimeMs: lifetime === undefined ? undefined : parseGoDuration(lifetime),
    files: directory === undefined ? undefined : followPair(directory, log, closers),
  }
}

/** The pair that cert-manager keeps in a mounted Secret. */
function followPair(directory: string, log: Log, closers: Closers): NonNullable<WebhookOptions['files']> {
  const listeners = new Set<() => void>()
  const open = (name: string) =>
    closers.keep(
      openWatchedFile(path.join(directory, name), {
        maxBytes: MAX_PEM_BYTES,
        onChange: () => {
          for (const listener of listeners) listener()
        },
        onProblem: (problem) => log.warn({ file: name, problem }, 'the webhook certificate cannot be read'),
      }),
    )
  const cert = open('tls.crt')
  const key = open('tls.key')
  return {
    current(): Certificate | undefined {
      const [certText, keyText] = [cert.read()?.toString('utf8'), key.read()?.toString('utf8')]
      if (certText === undefined || keyText === undefined) return undefined
      const certificate = readCertificate(certText, new Secret(keyText))
      // Two files that are replaced one after the other do not fit for a moment.
      if (certificate === undefined) log.warn({ directory }, 'tls.crt is no certificate, or tls.key is not its key')
      return certificate
    },
    onChange(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}
