import { request } from 'node:http'
import { EXIT } from '../compose/index.ts'
import { addressText, type ListenAddress, parseListenAddress } from '../listen/index.ts'
import { command } from './command.ts'
import { LISTEN_ADDRESS } from './options/option-values.ts'
import type { CommandSpec } from './options/options.ts'

const DEADLINE_MS = 2_000

const HEALTH_SPEC: CommandSpec = {
  name: 'extauth health',
  summary: 'Asks a running proxy, registry or operator whether it is healthy.',
  options: {
    admin: {
      type: 'string',
      is: LISTEN_ADDRESS,
      value: 'ADDR',
      help: 'Admin listener: host:port, :port or unix:/path. Default 127.0.0.1:8081.',
    },
    ready: { type: 'boolean', help: 'Asks /readiness instead of /health.' },
  },
  notes: 'Exit codes: 0 healthy, 1 unhealthy or no response within 2 s, 2 usage.',
}

/** `extauth health`: the health check of the image. */
export const runHealth = command(HEALTH_SPEC, async ({ options, io }) => {
  const address = parseListenAddress(options.text('admin') ?? '127.0.0.1:8081')
  const path = options.flag('ready') ? '/readiness' : '/health'
  try {
    const status = await statusOf(address, path)
    io.stdout(`${path}: ${status}\n`)
    return status === 200 ? EXIT.fine : EXIT.failed
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    io.stderr(`extauth health: no response from ${addressText(address)}${path}: ${reason}\n`)
    return EXIT.failed
  }
})

function statusOf(address: ListenAddress, path: string): Promise<number> {
  const target =
    address.kind === 'unix'
      ? { socketPath: address.path }
      : address.kind === 'tcp'
        ? { host: reachable(address.host), port: address.port }
        : {}
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(DEADLINE_MS)
    request({ ...target, path, signal, headers: { host: 'localhost' } }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
      .once('error', reject)
      .end()
  })
}

/** A listener on all interfaces is reached on loopback. */
const reachable = (host: string): string =>
  ['', '*', '0.0.0.0'].includes(host) ? '127.0.0.1' : host === '::' ? '::1' : host
