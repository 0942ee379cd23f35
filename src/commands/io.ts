import { isatty } from 'node:tty'

/** What a command may touch of the process, so that tests run commands without one. */
export interface Io {
  stdout(text: string): void
  stderr(text: string): void
  /** Whether standard error is a terminal. Default no. */
  readonly isTerminal?: boolean
  /** The environment; only `commands` ever sees it. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Reads all of standard input, for `--token-file -`. */
  stdin(): Promise<string>
  /** Resolves when the process is asked to stop (SIGTERM, SIGINT). */
  readonly stop: Promise<string>
  /** Calls back on SIGHUP. */
  onReload(listener: () => void): void
}

/**
 * So soon after the first, in milliseconds, a signal is the same one once more: a terminal tells every process, and npm, which
 * the terminal tells as well, passes it on.
 */
const SAME_SIGNAL_MS = 500

/** The real process behind `Io`. A second signal ends the process at once. */
export function processIo(): Io {
  const stop = new Promise<string>((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.once(signal, () => {
        resolve(signal)
        const atMs = performance.now()
        process.on(signal, () => {
          if (performance.now() - atMs > SAME_SIGNAL_MS) process.exit(1)
        })
      })
    }
  })
  // A reader that has gone (`| head`) wants no more; that is no failure of the command.
  for (const stream of [process.stdout, process.stderr])
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error
    })
  return {
    stdout: (text) => void process.stdout.write(text),
    stderr: (text) => void process.stderr.write(text),
    isTerminal: isatty(2),
    env: process.env,
    stdin: async () => {
      const chunks: Buffer[] = []
      for await (const chunk of process.stdin) chunks.push(chunk as Buffer)
      return Buffer.concat(chunks).toString('utf8')
    },
    stop,
    onReload: (listener) => void process.on('SIGHUP', listener),
  }
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
