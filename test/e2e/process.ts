import { type ChildProcess, spawn, type StdioOptions } from 'node:child_process'
import path from 'node:path'

const BIN = path.join(import.meta.dirname, '../../bin/extauth.cjs')

/** A real `extauth` process with everything that it printed. */
export interface Running {
  readonly process: ChildProcess
  readonly stdout: () => string
  readonly stderr: () => string
  /** The next (or an earlier) log line with this message, parsed. */
  line(message: string): Promise<Record<string, unknown>>
  /** Exit code, when it has ended. */
  readonly ended: Promise<number | null>
}

export interface ProcessOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  /** A program and its arguments that starts what follows them. */
  readonly through?: readonly string[]
}

/** The bare process with these arguments; the test's environment without `EXTAUTH_*` and proxies. */
export function spawnExtauth(args: readonly string[], stdio: StdioOptions, options: ProcessOptions = {}): ChildProcess {
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(EXTAUTH_|https?_proxy$|no_proxy$|AWS_)/i.test(name)),
  )
  const { through = [] } = options
  const [program = '', ...rest] = [...through, process.execPath, BIN, ...args]
  return spawn(program, rest, {
    env: { ...env, ...options.env },
    stdio,
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  })
}

/** Starts `extauth` with these arguments and reads what it prints. */
export function extauth(args: readonly string[], options: ProcessOptions = {}): Running {
  const child = spawnExtauth(args, ['ignore', 'pipe', 'pipe'], options)
  let [stdout, stderr] = ['', '']
  const listeners = new Set<() => void>()
  child.stdout?.on('data', (chunk: Buffer) => {
    stdout += chunk.toString()
    for (const listener of listeners) listener()
  })
  child.stderr?.on('data', (chunk: Buffer) => {
    stderr += chunk.toString()
    for (const listener of listeners) listener()
  })
  const ended = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)))
  const find = (message: string): Record<string, unknown> | undefined =>
    stderr
      .split('\n')
      .filter((line) => line.startsWith('{') && line.endsWith('}'))
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .findLast((line) => line['msg'] === message)
  return {
    process: child,
    stdout: () => stdout,
    stderr: () => stderr,
    line: (message) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const found = find(message)
          if (found !== undefined) resolve(found)
        }
        listeners.add(look)
        look()
        void ended.then((code) => reject(new Error(`ended with ${code} before "${message}":\n${stderr}`)))
      }),
    ended,
  }
}
