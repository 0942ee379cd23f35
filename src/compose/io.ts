import { constants } from 'node:os'
import { isatty } from 'node:tty'
import { monotonicNow } from '../core/index.ts'

/** The process environment of a command; tests replace it. */
export interface Io {
  stdout(text: string): void
  stderr(text: string): void
  /** Whether standard error is a terminal or is forwarded to one. Default no. */
  readonly isTerminal?: boolean
  /** Whether this is a worker: its supervisor has already warned about the command line and environment. */
  readonly isWorker?: boolean
  /** The environment; only `commands` reads it. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Reads all of standard input, for `-` instead of a file. Throws `UsageError` for more than 32 MiB. */
  stdin(): Promise<string>
  /**
   * Resolves on SIGTERM or SIGINT. A command that has to clean up calls this before it begins;
   * a command that never calls it is terminated by the signal.
   */
  readonly stop: Promise<string>
  /** Calls `listener` on SIGHUP. */
  onReload(listener: () => void): void
}

/**
 * A second signal within this time (milliseconds) is a duplicate: a terminal signals every process, and npm
 * forwards the signal that it receives.
 */
const SAME_SIGNAL_MS = 500

/** Environment variable that marks a worker; its value is the log target of the supervisor, `terminal` or `pipe`. */
export const WORKER = 'MCP_EXTAUTH_WORKER'

const MAX_STDIN_BYTES = 32 * 1024 * 1024

export interface ProcessIo extends Io {
  /** The promise of `stop` if a command requested it; reading it changes nothing. */
  readonly stopped: Promise<string>
}

/** `Io` of the current process. A second signal terminates the process at once. */
export function processIo(): ProcessIo {
  const stop = Promise.withResolvers<string>()
  let isHeeded = false
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => {
      if (!isHeeded) {
        endWith(signal)
        return
      }
      stop.resolve(signal)
      const atMs = monotonicNow()
      process.on(signal, () => {
        if (monotonicNow() - atMs > SAME_SIGNAL_MS) process.exit(1)
      })
    })
  }
  for (const [stream, name] of [
    [process.stdout, 'output'],
    [process.stderr, 'error'],
  ] as const)
    stream.on('error', ({ code }: NodeJS.ErrnoException) => {
      // A closed reader (`| head`) is not an error of the command.
      if (code === 'EPIPE') return
      if (name === 'output') process.stderr.write(`extauth: standard output cannot be written (${code})\n`)
      // Long-running commands continue without standard output; for other commands it is the result.
      if (!isHeeded) process.exitCode = EXIT.failed
    })
  return {
    stdout: (text) => void process.stdout.write(text),
    stderr: (text) => void process.stderr.write(text),
    isTerminal: isatty(2) || process.env[WORKER] === 'terminal',
    isWorker: process.env[WORKER] !== undefined && process.connected,
    env: process.env,
    stdin: async () => {
      const chunks: Buffer[] = []
      let length = 0
      for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
        if ((length += chunk.length) > MAX_STDIN_BYTES) throw new UsageError('standard input holds more than 32 MiB')
        chunks.push(chunk)
      }
      return Buffer.concat(chunks).toString('utf8')
    },
    get stop() {
      isHeeded = true
      return stop.promise
    },
    stopped: stop.promise,
    onReload: (listener) => void process.on('SIGHUP', listener),
  }
}

/** Terminates by the signal's default action; PID 1 of a container would ignore the signal. */
function endWith(signal: 'SIGTERM' | 'SIGINT'): void {
  process.removeAllListeners(signal)
  process.kill(process.pid, signal)
  setImmediate(() => process.exit(128 + constants.signals[signal]))
}

/** Exit codes of every command. */
export const EXIT = { fine: 0, failed: 1, usage: 2, nothingFound: 3 } as const

/** Invalid command line: exit code 2. The message names the expected value. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'UsageError'
  }
}
