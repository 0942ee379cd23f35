import { type ChildProcess, spawn, type StdioOptions } from 'node:child_process'
import path from 'node:path'

const BIN = path.join(import.meta.dirname, '../../../bin/extauth.cjs')

/** The single executable that tests start instead of the launcher, if the environment names one. */
export const EXECUTABLE = process.env['EXTAUTH_EXECUTABLE']

/** A real `extauth` process with everything that it printed. */
export interface Running {
  readonly process: ChildProcess
  readonly stdout: () => string
  readonly stderr: () => string
  /** Standard output and error, as they came. */
  readonly printed: () => string
  /** Waits until standard output or error contains the text. Throws when the process ends before. */
  shows(text: string): Promise<void>
  /** The latest log line with this message, parsed; waits for the first. */
  line(message: string): Promise<Record<string, unknown>>
  /** Exit code, when it has ended. */
  readonly ended: Promise<number | null>
}

export interface ProcessOptions {
  readonly cwd?: string
  /** Variables besides those of the test. */
  readonly env?: Readonly<Record<string, string>>
  /** Script for Node. Default: the launcher of this checkout. */
  readonly program?: string
  /** Options of Node. */
  readonly node?: readonly string[]
  /** A program and its arguments that starts what follows them. */
  readonly through?: readonly string[]
}

/** The bare process with these arguments; the test's environment without `EXTAUTH_*` and proxies. */
export function spawnExtauth(args: readonly string[], stdio: StdioOptions, options: ProcessOptions = {}): ChildProcess {
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(EXTAUTH_|AWS_|KUBE|https?_proxy$|no_proxy$)/i.test(name)),
  )
  const { through = [], node = [], program } = options
  const started =
    EXECUTABLE !== undefined && program === undefined && node.length === 0
      ? [EXECUTABLE]
      : [process.execPath, ...node, program ?? BIN]
  const [command = '', ...rest] = [...through, ...started, ...args]
  return spawn(command, rest, {
    env: { ...env, ...options.env },
    stdio,
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  })
}

/** Starts `extauth` with these arguments and reads what it prints. Its standard input is empty, unless it is a `pipe`. */
export function extauth(args: readonly string[], options: ProcessOptions & { readonly stdin?: 'pipe' } = {}): Running {
  const child = spawnExtauth(args, [options.stdin ?? 'ignore', 'pipe', 'pipe'], options)
  let [stdout, stderr, printed, unread] = ['', '', '', '']
  const latest = new Map<unknown, Record<string, unknown>>()
  const listeners = new Set<() => void>()
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk
    printed += chunk
    for (const listener of listeners) listener()
  })
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk
    printed += chunk
    const lines = (unread + chunk).split('\n')
    unread = lines.pop() ?? ''
    for (const text of lines) {
      if (!text.startsWith('{') || !text.endsWith('}')) continue
      const line = JSON.parse(text) as Record<string, unknown>
      latest.set(line['msg'], line)
    }
    for (const listener of listeners) listener()
  })
  const ended = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)))
  /** Waits for a result of `find`. */
  const awaited = <T>(what: string, find: () => T | undefined): Promise<T> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const found = find()
        if (found === undefined) return
        listeners.delete(look)
        resolve(found)
      }
      listeners.add(look)
      look()
      void ended.then((code) => reject(new Error(`ended with ${code} before "${what}":\n${stderr}`)))
    })
  return {
    process: child,
    stdout: () => stdout,
    stderr: () => stderr,
    printed: () => printed,
    shows: async (text) => void (await awaited(text, () => printed.includes(text) || undefined)),
    line: (message) => awaited(message, () => latest.get(message)),
    ended,
  }
}
