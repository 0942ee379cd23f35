import { constants } from 'node:os'
import { isatty } from 'node:tty'

/** What a command may touch of the process, so that tests run commands without one. */
export interface Io {
  stdout(text: string): void
  stderr(text: string): void
  /** Whether standard error is a terminal, or goes to one. Default no. */
  readonly isTerminal?: boolean
  /** Whether this is a worker: its supervisor has the same command line and environment, and has told what is odd about them. */
  readonly isWorker?: boolean
  /** The environment; only `commands` ever sees it. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Reads all of standard input, for `-` in the place of a file. Throws `UsageError` for more than 32 MiB. */
  stdin(): Promise<string>
  /**
   * Resolves when the process is asked to stop (SIGTERM, SIGINT). A command that has something to end asks for this before it
   * begins; one that never does ends with the signal, as programs do.
   */
  readonly stop: Promise<string>
  /** Calls back on SIGHUP. */
  onReload(listener: () => void): void
}

/**
 * So soon after the first, in milliseconds, a signal is the same one once more: a terminal tells every process, and npm, which
 * the terminal tells as well, passes it on.
 */
const SAME_SIGNAL_MS = 500

/** Says to a worker that it is one, and whether the log of its supervisor goes to a `terminal` or a `pipe`. */
export const WORKER = 'MCP_EXTAUTH_WORKER'

const MAX_STDIN_BYTES = 32 * 1024 * 1024

/** `Io` of a process. */
export interface ProcessIo extends Io {
  /** What `stop` gave to a command that asked for it; for whoever only looks, and changes nothing. */
  readonly stopped: Promise<string>
}

/** The real process behind `Io`. A second signal ends the process at once. */
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
      const atMs = performance.now()
      process.on(signal, () => {
        if (performance.now() - atMs > SAME_SIGNAL_MS) process.exit(1)
      })
    })
  }
  for (const [stream, name] of [
    [process.stdout, 'output'],
    [process.stderr, 'error'],
  ] as const)
    stream.on('error', ({ code }: NodeJS.ErrnoException) => {
      // A reader that has gone (`| head`) wants no more; that is no failure of the command.
      if (code === 'EPIPE') return
      if (name === 'output') process.stderr.write(`extauth: standard output cannot be written (${code})\n`)
      // Who serves goes on without it; of any other command it is what was asked for.
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

/** What the signal does where nobody listens; to the first process of a container it would do nothing. */
function endWith(signal: 'SIGTERM' | 'SIGINT'): void {
  process.removeAllListeners(signal)
  process.kill(process.pid, signal)
  setImmediate(() => process.exit(128 + constants.signals[signal]))
}

/** Exit codes of every command. */
export const EXIT = { fine: 0, failed: 1, usage: 2, nothingFound: 3 } as const

/** Wrong words on the command line: exit code 2, and the text says what is right. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'UsageError'
  }
}
