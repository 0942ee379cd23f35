import { parseGoDuration } from '../fields/index.ts'
import { EXIT, UsageError } from '../compose/index.ts'
import { loggedCommand } from './command.ts'
import { NO_CLIENTS } from './options/log-options.ts'
import { DURATION, FILE, LISTEN_ADDRESS } from './options/option-values.ts'
import type { CommandSpec } from './options/options.ts'
import { runRegistryServer } from '../compose/registry/index.ts'
import { serve } from './serve.ts'

export const REGISTRY_SPEC: CommandSpec = {
  name: 'extauth registry',
  summary: 'Runs the registry server, which lists MCP servers. Logs go to standard error.',
  options: {
    config: {
      type: 'string',
      short: 'c',
      is: FILE,
      value: 'FILE',
      help: 'Registry file with `auth` and `registries`.',
    },
    address: {
      type: 'string',
      is: LISTEN_ADDRESS,
      value: 'ADDR',
      help: 'Listen address: host:port, :port or unix:/path. Default :8080.',
    },
    'internal-address': {
      type: 'string',
      is: LISTEN_ADDRESS,
      value: 'ADDR',
      help: 'Internal listener: health, readiness, version, metrics. Default :8081.',
    },
    'drain-grace': {
      type: 'string',
      is: DURATION,
      value: 'DURATION',
      help: 'Grace period for in-flight requests after SIGTERM. Default 10s.',
    },
    ...NO_CLIENTS,
  },
  notes: [
    'Data and registry file reload on change and on SIGHUP. Invalid files are rejected, and /readiness reports',
    'them.',
    'HTTPS_PROXY, HTTP_PROXY and NO_PROXY are honored.',
    '',
    'Example:',
    '  extauth registry --config config/registry.yaml --address 127.0.0.1:8080',
    '',
    'Exit codes: 0 stopped on request, 1 configuration invalid or address in use, 2 usage.',
  ].join('\n'),
}

/** `extauth registry`: runs until stopped. */
export const runRegistry = loggedCommand(REGISTRY_SPEC, 'info', async ({ options, io, log }) => {
  const configPath = options.text('config')
  if (configPath === undefined) throw new UsageError('needs --config FILE')
  const grace = options.text('drain-grace')
  await serve({ io, log }, async () => {
    const registry = await runRegistryServer({
      configPath,
      address: options.text('address'),
      internalAddress: options.text('internal-address'),
      drainGraceMs: grace === undefined ? undefined : parseGoDuration(grace),
      logsClients: !options.flag('no-log-clients'),
      env: io.env,
      log,
    })
    return {
      banner: `registry at ${registry.url}, internal server at ${registry.internalUrl}\n`,
      reload: () => registry.reload(),
      close: () => registry.close(),
    }
  })
  return EXIT.fine
})
