import { EXIT } from '../compose/index.ts'
import { parseListenAddress } from '../listen/index.ts'
import { ADMIN_OPTION, askAdmin, DEFAULT_ADMIN, NoResponse } from './admin-client.ts'
import { command } from './command.ts'
import type { CommandSpec } from './options/options.ts'

const HEALTH_SPEC: CommandSpec = {
  name: 'extauth health',
  summary: 'Asks a running proxy, registry or operator whether it is healthy.',
  options: {
    admin: ADMIN_OPTION,
    ready: { type: 'boolean', help: 'Asks /readiness instead of /health.' },
  },
  notes: 'Exit codes: 0 healthy, 1 unhealthy or no response within 2 s, 2 usage.',
}

/** `extauth health`: the health check of the image. */
export const runHealth = command(HEALTH_SPEC, async ({ options, io }) => {
  const path = options.flag('ready') ? '/readiness' : '/health'
  try {
    const { status } = await askAdmin(parseListenAddress(options.text('admin') ?? DEFAULT_ADMIN), { path })
    io.stdout(`${path}: ${status}\n`)
    return status === 200 ? EXIT.fine : EXIT.failed
  } catch (error) {
    if (!(error instanceof NoResponse)) throw error
    io.stderr(`extauth health: ${error.message}\n`)
    return EXIT.failed
  }
})
