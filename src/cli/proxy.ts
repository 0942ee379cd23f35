import { isLoopbackHost } from '../core/index.ts'
import { parseGoDuration, parseSize } from '../fields/index.ts'
import { connectSources, EXIT, UsageError } from '../compose/index.ts'
import { parseListenAddress } from '../listen/index.ts'
import { loggedCommand } from './command.ts'
import { inspectorOf, inspectorOptions } from './options/inspector-options.ts'
import { NO_CLIENTS } from './options/log-options.ts'
import { DURATION, MEMORY_SIZE, wholeNumber } from './options/option-values.ts'
import type { CommandSpec, Parsed } from './options/options.ts'
import { runProxy, type RunProxyOptions } from '../compose/proxy/index.ts'
import { serve } from './serve.ts'
import { configOption, SOURCE_OPTIONS, sourcesFrom, stdinFor } from './options/source-options.ts'
import type { ResolvedRoute } from '../resources/index.ts'

export const PROXY_SPEC: CommandSpec = {
  name: 'extauth proxy',
  summary: 'Runs the proxy in front of MCP servers. Logs go to standard error.',
  options: {
    config: configOption('Configuration file or directory; - for standard input.'),
    ...SOURCE_OPTIONS,
    connect: {
      type: 'boolean',
      help: 'With --target: connects your own account there in the browser; for a machine with one user.',
    },
    'show-claims': {
      type: 'boolean',
      help: 'Shows claims and subjects on /decisions and /inspect of the admin listener.',
    },
    ...inspectorOptions('from the configuration, else off (bodies in the short form on loopback)'),
    'drain-grace': {
      type: 'string',
      is: DURATION,
      value: 'DURATION',
      help: 'Grace period for in-flight POSTs after SIGTERM. Default 10s.',
    },
    workers: {
      type: 'string',
      is: wholeNumber(1, 64),
      value: 'N',
      help: 'Number of worker processes that share the port. Default 1.',
    },
    'memory-limit': {
      type: 'string',
      is: MEMORY_SIZE,
      value: 'SIZE',
      help: 'Memory limit, such as 512Mi. Default that of the container.',
    },
    ...NO_CLIENTS,
  },
  notes: [
    'Changed files and SIGHUP reload the configuration; an invalid one is rejected and the running one kept.',
    'HTTPS_PROXY, HTTP_PROXY and NO_PROXY are honored.',
    '--connect keeps the account in $XDG_STATE_HOME/extauth/connections, sealed with a key that only you can read.',
    '',
    'Examples:',
    '  extauth proxy --config proxy.yaml',
    '  extauth proxy --config manifests/ --callers callers.yaml --listen 127.0.0.1:9000',
    '  extauth proxy --target https://mcp.example.com/mcp --external-auth auth.yaml',
    '  extauth proxy --target https://mcp.example.com/mcp --connect',
    '',
    'Exit codes: 0 stopped on request, 1 configuration invalid or address in use, 2 usage.',
  ].join('\n'),
}

/** `extauth proxy`: runs until stopped. */
export const runProxyCommand = loggedCommand(PROXY_SPEC, 'info', async ({ options, io, log }) => {
  const workers = Number(options.text('workers') ?? '1')
  const several = workers > 1 ? await import('../workers/index.ts') : undefined
  const isWorker = several !== undefined && io.isWorker === true
  // The supervisor reads standard input and passes its content to the workers.
  const stdin = isWorker ? undefined : await stdinFor(options.list('config'), io)
  const target = connectTarget(options)
  const sources =
    target === undefined
      ? { ...sourcesOf(options), stdin }
      : { ...sourcesFrom(options, []), ...(await connectSources(target, io.env)) }
  const settings = { ...sources, ...processOptionsOf(options), workers, log, env: io.env }
  if (isWorker)
    return several.runWorker(settings, several.channelToSupervisor(), several.onConnection, io).finally(several.leave)
  await serve({ io, log }, async () => {
    const proxy = await (several?.runWorkers({ ...settings, isTerminal: io.isTerminal === true }) ?? runProxy(settings))
    const inspector = proxy.inspectUrl === undefined ? '' : `inspector at ${proxy.inspectUrl}\n`
    const accounts = target === undefined ? '' : `your account at ${proxy.url}/connections\n`
    const where = `proxy at ${proxy.url}, admin listener at ${proxy.adminUrl}\n${inspector}${accounts}`
    return {
      banner: where + routeList(proxy.url, proxy.routes),
      reload: () => proxy.reload(),
      close: () => proxy.close(),
    }
  })
  return EXIT.fine
})

function sourcesOf(options: Parsed): ReturnType<typeof sourcesFrom> {
  const configPaths = options.list('config')
  const target = options.text('target')
  const externalAuth = options.text('external-auth')
  if (target === undefined && configPaths.length === 0)
    throw new UsageError('needs --config PATH, or --target URL with --external-auth FILE or --connect')
  if ((target === undefined) !== (externalAuth === undefined))
    throw new UsageError('--target and --external-auth must be given together, or --target with --connect')
  return sourcesFrom(options, configPaths)
}

function processOptionsOf(options: Parsed): Omit<RunProxyOptions, 'log' | 'env' | 'configPaths'> {
  const grace = options.text('drain-grace')
  const drainGraceMs = grace === undefined ? undefined : parseGoDuration(grace)
  return {
    showClaims: options.flag('show-claims'),
    logsClients: !options.flag('no-log-clients'),
    ...inspectorOf(options),
    memoryLimitBytes: parseSize(options.text('memory-limit') ?? ''),
    ...(drainGraceMs === undefined ? {} : { drainGraceMs }),
  }
}

/** Options that --connect replaces or that need a shared configuration. */
const NOT_WITH_CONNECT = [
  'config',
  'external-auth',
  'callers',
  'secrets-dir',
  'namespace',
  'api-group',
  'sts-endpoint',
  'workers',
] as const

/** The server of `--connect`; undefined without it. Throws `UsageError`. */
function connectTarget(options: Parsed): string | undefined {
  if (!options.flag('connect')) return undefined
  const target = options.text('target')
  if (target === undefined) throw new UsageError('--connect requires --target URL')
  for (const name of NOT_WITH_CONNECT)
    if (options.list(name).length > 0)
      throw new UsageError(
        `--connect excludes --${name}: it generates the whole configuration, for one user and one process`,
      )
  const { protocol, hostname } = new URL(target)
  if (protocol === 'http:' && !isLoopbackHost(hostname))
    throw new UsageError('--target must be https to connect an account; plain http is allowed for loopback only')
  const address = options.text('listen')
  const bind = address === undefined ? undefined : parseListenAddress(address)
  if (bind !== undefined && (!bind.isLoopback || bind.kind === 'unix'))
    throw new UsageError(
      '--connect serves only you: --listen must be a loopback address that browsers reach, such as 127.0.0.1:8080',
    )
  return target
}

/** Lists the routes of a proxy at `url`, one line each: address, backend, credential, callers. */
function routeList(url: string, routes: readonly ResolvedRoute[]): string {
  const rows = routes.map((route) => [
    url.startsWith('unix:') ? route.path : url + route.path,
    // Without the query, which may be confidential.
    `${route.target.origin}${route.target.path}`,
    route.auth.type,
    callersOf(route),
  ])
  const widths = [0, 1, 2].map((column) => Math.max(0, ...rows.map((row) => row[column]?.length ?? 0)))
  const lines = rows.map(([at, target, type, callers]) => {
    const cells = [at, target, type].map((cell, column) => (cell ?? '').padEnd(widths[column] ?? 0))
    return `  ${cells.join('  ')}  ${callers}\n`
  })
  return lines.join('')
}

function callersOf({ callers, authServer }: ResolvedRoute): string {
  if (authServer === undefined && callers.mode === 'anonymous') return 'anonymous callers'
  return 'callers with a token'
}
