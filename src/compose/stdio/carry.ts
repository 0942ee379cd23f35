import type { Readable, Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { Bridge, Output } from '../../bridge/index.ts'
import { type McpEndpoint, Secret } from '../../core/index.ts'
import type { OpenLog } from '../../report/index.ts'
import type { Io } from '../io.ts'
import { MAX_MESSAGE_BYTES, type OpenedWay, openWay, type StdioWay } from './way.ts'

/** Clients kill a server about two seconds after they asked it to stop; the session must be closed by then. */
const STOP_GRACE_MS = 500
/** Milliseconds between checks whether the parent process is alive. */
const PARENT_LOOK_MS = 1000

export interface CarryOptions {
  readonly way: StdioWay
  /** Sent with each request; names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** Grace period for running requests after the end of the input, in milliseconds. */
  readonly graceMs: number
  readonly env: Io['env']
  readonly log: OpenLog
  /** Resolves with the reason for a stop. */
  readonly stop: Promise<string>
  readonly input: Readable
  readonly output: Writable
  /** Opens a page in the user's browser. */
  readonly openBrowser: (url: string) => void
}

/**
 * Relays MCP between two streams and a server until the input ends, the output closes, the parent process ends,
 * or `stop` resolves. Throws `ConfigError` and `UsageError`; nothing is left open.
 */
export async function carryStdio(options: CarryOptions): Promise<void> {
  await using opened = new AsyncDisposableStack()
  const way = await openWay(options.way, options.env, options.log, opened)
  await carry({ ...way, endpoint: withHeaders(way.endpoint, options.headers) }, options)
}

/** Adds the user's headers to each request; headers of the bridge take precedence. */
const withHeaders = (endpoint: McpEndpoint, headers: CarryOptions['headers']): McpEndpoint => ({
  send: (request) => endpoint.send({ ...request, headers: { ...headers, ...request.headers } }),
  close: () => endpoint.close(),
})

async function carry({ endpoint, credentials, server, pages }: OpenedWay, options: CarryOptions): Promise<void> {
  const { log } = options
  const output = new Output(options.output)
  const bridge = new Bridge({
    endpoint,
    credentials,
    input: options.input,
    output,
    log,
    server,
    pause: (ms, signal) => delay(ms, undefined, { signal, ref: false }),
    maxMessageBytes: MAX_MESSAGE_BYTES,
    opener: pages && { origin: pages, open: options.openBrowser },
    secrets: Object.values(options.headers).map((value) => new Secret(value)),
  })
  log.info({ server }, 'relaying messages')
  const left = Promise.any([options.stop, output.gone.then(() => 'output closed'), parentGone()])
  const why = await Promise.race([bridge.run().then(() => undefined, inputBroke), left])
  log.info({ why: why ?? 'input ended' }, 'stopping')
  options.input.destroy()
  const closing = bridge.close(why === undefined ? options.graceMs : STOP_GRACE_MS)
  // A requested stop already uses the short grace period; one during the long period ends it.
  if (why === undefined) void left.then(() => bridge.hurry())
  else void output.gone.then(() => bridge.hurry())
  await closing
}

const inputBroke = (): string => 'input failed'

/** Resolves when the parent process has ended, as the input might never end then. */
function parentGone(): Promise<string> {
  const parent = process.ppid
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      if (process.ppid === parent) return
      clearInterval(timer)
      resolve('parent process ended')
    }, PARENT_LOOK_MS)
    timer.unref()
  })
}
