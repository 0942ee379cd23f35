import { asFailure } from '../core/index.ts'
import { parseGoDuration } from '../fields/index.ts'
import { ConfigError, EXIT, type Io, UsageError, growYoungGeneration } from '../compose/index.ts'
import { logOptions, NO_CLIENTS, openLogAsAsked } from './options/log-options.ts'
import { DURATION, FILE, LISTEN_ADDRESS } from './options/option-values.ts'
import { type CommandSpec, parseOptions, renderHelp } from './options/options.ts'
import { type RunningRegistry, runRegistryServer } from '../compose/registry/index.ts'

/** The table of its options. */
export const REGISTRY_SPEC: CommandSpec = {
  name: 'extauth registry',
  summary: 'Runs the registry server, which lists MCP servers to authenticated callers. Logs go to standard error.',
  options: {
    config: { type: 'string', is: FILE, value: 'FILE', help: 'The registry file: `auth` and `registries`.' },
    address: {
      type: 'string',
      is: LISTEN_ADDRESS,
      value: 'ADDR',
      help: 'host:port, :port or unix:/path. Default :8080.',
    },
    'internal-address': {
      type: 'string',
      is: LISTEN_ADDRESS,
      value: 'ADDR',
      help: 'Health, readiness, version, metrics. Default :8081.',
    },
    'drain-grace': {
      type: 'string',
      is: DURATION,
      value: 'DURATION',
      help: 'How long answers go on after SIGTERM. Default 10s.',
    },
    ...logOptions('info'),
    ...NO_CLIENTS,
  },
  notes: [
    'Changed data are taken over at once; broken data never replace good ones, and /readiness says so.',
    'So it is with the registry file itself. SIGHUP looks at both again.',
    'HTTPS_PROXY, HTTP_PROXY and NO_PROXY are honoured.',
    '',
    'Example:',
    '  extauth registry --config config/registry.yaml --address 127.0.0.1:8080',
    '',
    'Exit codes: 0 stopped on request, 1 configuration refused or address not free, 2 usage.',
  ].join('\n'),
}

/** `extauth registry`: runs until it is asked to stop. */
export async function runRegistry(argv: readonly string[], io: Io): Promise<number> {
  const options = parseOptions(REGISTRY_SPEC, argv, io.env)
  if (options === 'help') {
    io.stdout(renderHelp(REGISTRY_SPEC))
    return EXIT.fine
  }
  const { stop } = io
  const configPath = options.text('config')
  if (configPath === undefined) throw new UsageError('needs --config FILE')
  const grace = options.text('drain-grace')

  const log = openLogAsAsked(options, 'info', io)
  let registry: RunningRegistry
  try {
    registry = await runRegistryServer({
      configPath,
      address: options.text('address'),
      internalAddress: options.text('internal-address'),
      drainGraceMs: grace === undefined ? undefined : parseGoDuration(grace),
      logsClients: !options.flag('no-log-clients'),
      env: io.env,
      log,
    })
  } catch (error) {
    log.flush()
    return refuse(error, io)
  }
  growYoungGeneration()
  io.stdout(`registry at ${registry.url}, internal server at ${registry.internalUrl}\n`)
  io.onReload(() => void registry.reload())
  const signal = await stop
  log.info({ signal }, 'stopping')
  await registry.close()
  log.info({}, 'stopped')
  log.flush()
  return EXIT.fine
}

function refuse(error: unknown, io: Io): number {
  if (error instanceof ConfigError) {
    for (const line of error.lines) io.stderr(`${line}\n`)
    io.stderr('extauth registry: the configuration cannot be used; nothing was started.\n')
    return EXIT.failed
  }
  const failure = asFailure(error)
  if (failure.code === 'internal_error') throw error
  const { code } = (failure.cause ?? {}) as { code?: unknown }
  const hint =
    code === 'EADDRINUSE' ? ' The address is in use; choose another one with --address or --internal-address.' : ''
  io.stderr(`extauth registry: ${failure.detail ?? failure.code}.${hint}\n`)
  return EXIT.failed
}
