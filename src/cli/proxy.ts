import { asFailure } from '../core/index.ts'
import { parseGoDuration, parseSize } from '../fields/index.ts'
import { ConfigError, EXIT, type Io, UsageError, growYoungGeneration } from '../compose/index.ts'
import { inspectorOf, inspectorOptions } from './options/inspector-options.ts'
import { logOptions, NO_CLIENTS, openLogAsAsked } from './options/log-options.ts'
import { DURATION, FILE, MEMORY_SIZE, wholeNumber } from './options/option-values.ts'
import { type CommandSpec, type Parsed, parseOptions, renderHelp } from './options/options.ts'
import { routeList } from './route-list.ts'
import { type RunProxyOptions, runProxy, type RunningProxy } from '../compose/proxy/index.ts'
import { SOURCE_OPTIONS, sourcesFrom, stdinFor } from './options/source-options.ts'

/** The table of its options. */
export const PROXY_SPEC: CommandSpec = {
  name: 'extauth proxy',
  summary: 'Runs the proxy in front of MCP servers. Logs go to standard error.',
  options: {
    config: {
      type: 'string',
      is: FILE,
      multiple: true,
      value: 'PATH',
      help: 'A file or directory, - for standard input.',
    },
    ...SOURCE_OPTIONS,
    'show-claims': { type: 'boolean', help: '/decisions and /inspect of the admin listener show claims and subjects.' },
    ...inspectorOptions('as the configuration says, else off; bodies in the short form on loopback'),
    'drain-grace': {
      type: 'string',
      is: DURATION,
      value: 'DURATION',
      help: 'How long answers to POST go on after SIGTERM. Default 10s.',
    },
    workers: {
      type: 'string',
      is: wholeNumber(1, 64),
      value: 'N',
      help: 'Processes that share the port and one admin listener. Default 1.',
    },
    'memory-limit': {
      type: 'string',
      is: MEMORY_SIZE,
      value: 'SIZE',
      help: 'Memory that it may use, such as 512Mi. Default: that of the container.',
    },
    ...logOptions('info'),
    ...NO_CLIENTS,
  },
  notes: [
    'Changed files and SIGHUP reload the configuration; a broken one never replaces a working one.',
    'HTTPS_PROXY, HTTP_PROXY and NO_PROXY are honoured.',
    '',
    'Examples:',
    '  extauth proxy --config proxy.yaml',
    '  extauth proxy --config manifests/ --callers callers.yaml --listen 127.0.0.1:9000',
    '  extauth proxy --target https://mcp.example.com/mcp --external-auth auth.yaml',
    '',
    'Exit codes: 0 stopped on request, 1 configuration refused or address not free, 2 usage.',
  ].join('\n'),
}

/** `extauth proxy`: runs until it is asked to stop. */
export async function runProxyCommand(argv: readonly string[], io: Io): Promise<number> {
  const options = parseOptions(PROXY_SPEC, argv, io.env)
  if (options === 'help') {
    io.stdout(renderHelp(PROXY_SPEC))
    return EXIT.fine
  }
  const { stop } = io
  const workers = Number(options.text('workers') ?? '1')
  const several = workers > 1 ? await import('../workers/index.ts') : undefined
  const isWorker = several?.isWorker(io) === true
  const log = openLogAsAsked(options, 'info', isWorker ? several.ioOfWorker(io) : io)
  // Workers have none of their own; their supervisor tells them what was in it.
  const stdin = isWorker ? undefined : await stdinFor(options.list('config'), io)
  const settings = { ...sourcesOf(options), workers, log, env: io.env, stdin }
  if (isWorker)
    return several.runWorker(settings, several.channelToSupervisor(), several.onConnection, io).finally(several.leave)
  let proxy: RunningProxy
  try {
    const isTerminal = io.isTerminal === true
    proxy = await (several?.runWorkers({ ...settings, isTerminal }) ?? runProxy(settings))
  } catch (error) {
    log.flush()
    return refuse(error, io)
  }
  growYoungGeneration()
  const inspector = proxy.inspectUrl === undefined ? '' : `inspector at ${proxy.inspectUrl}\n`
  const where = `proxy at ${proxy.url}, admin listener at ${proxy.adminUrl}\n${inspector}`
  io.stdout(where + routeList(proxy.url, proxy.routes))
  io.onReload(() => void proxy.reload())
  const signal = await stop
  log.info({ signal }, 'stopping')
  await proxy.close()
  log.info({}, 'stopped')
  log.flush()
  return EXIT.fine
}

function sourcesOf(options: Parsed): Omit<RunProxyOptions, 'log' | 'env'> {
  const configPaths = options.list('config')
  const target = options.text('target')
  const externalAuth = options.text('external-auth')
  if (target === undefined && configPaths.length === 0)
    throw new UsageError('needs --config PATH, or --target URL with --external-auth FILE')
  if ((target === undefined) !== (externalAuth === undefined))
    throw new UsageError('--target and --external-auth belong together')
  const grace = options.text('drain-grace')
  const drainGraceMs = grace === undefined ? undefined : parseGoDuration(grace)
  return {
    ...sourcesFrom(options, configPaths),
    showClaims: options.flag('show-claims'),
    logsClients: !options.flag('no-log-clients'),
    ...inspectorOf(options),
    memoryLimitBytes: parseSize(options.text('memory-limit') ?? ''),
    ...(drainGraceMs === undefined ? {} : { drainGraceMs }),
  }
}

function refuse(error: unknown, io: Io): number {
  if (error instanceof ConfigError) {
    for (const line of error.lines) io.stderr(`${line}\n`)
    io.stderr('extauth proxy: the configuration cannot be used; nothing was started.\n')
    return EXIT.failed
  }
  const failure = asFailure(error)
  if (failure.code === 'internal_error') throw error
  const { code } = (failure.cause ?? {}) as { code?: unknown }
  const hint = code === 'EADDRINUSE' ? ' The address is in use; choose another one with --listen or --admin.' : ''
  io.stderr(`extauth proxy: ${failure.detail ?? failure.code}.${hint}\n`)
  return EXIT.failed
}
