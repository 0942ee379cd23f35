import { type ChildProcess, spawn, type StdioOptions } from 'node:child_process'
import path from 'node:path'

const BIN = path.join(import.meta.dirname, '../../../bin/extauth.cjs')

/** A real `extauth` process with everything that it printed. */
export interface Running {
  readonly process: ChildProcess
  readonly stdout: () => string
  readonly stderr: () => string
  /** The latest log line with this message, parsed; waits for the first. */
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
  let [stdout, stderr, unread] = ['', '', '']
  const latest = new Map<unknown, Record<string, unknown>>()
  const listeners = new Set<() => void>()
  child.stdout?.setEncoding('utf8').on('data', (text: string) => void (stdout += text))
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk
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
  return {
    process: child,
    stdout: () => stdout,
    stderr: () => stderr,
    line: (message) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const found = latest.get(message)
          if (found === undefined) return
          listeners.delete(look)
          resolve(found)
        }
        listeners.add(look)
        look()
        void ended.then((code) => reject(new Error(`ended with ${code} before "${message}":\n${stderr}`)))
      }),
    ended,
  }
}
