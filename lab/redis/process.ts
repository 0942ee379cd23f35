import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, monotonicNow } from '../../src/core/index.ts'
import { freePort } from '../free-port.ts'

/** A Redis or a Sentinel that this process has started. */
export interface RedisProcess {
  readonly port: number
  /** Ends it like `kill -9`. */
  kill(): Promise<void>
  /** Stops it from doing anything, connections stay (SIGSTOP), and lets it go on. */
  pause(): void
  resume(): void
  /** Starts it again on the same port with the same files. */
  restart(): Promise<void>
  /** Its output. */
  output(): string
  close(): Promise<void>
}

export interface RedisProcessOptions {
  /** Path of `redis-server`, which is Sentinel too. */
  readonly binary: string
  /** Lines of redis.conf; `bind`, `dir` and, unless `ports` has them, `port` come from here. */
  readonly config: readonly string[]
  readonly isSentinel?: boolean
  /** Lines that make it listen on `port`. Default: plain. */
  readonly ports?: (port: number) => readonly string[]
  /** Default: a free one. */
  readonly port?: number
}

/** None of them outlives this process, unless that is killed. */
const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

const LONGEST_START_MS = 30_000
const MOST_OUTPUT = 64 * 1024

/** Starts a process on loopback in a directory of its own and waits until its port answers. Throws when it ends at once. */
export async function startRedisProcess(options: RedisProcessOptions): Promise<RedisProcess> {
  const { binary, isSentinel = false, ports = (port) => [`port ${port}`] } = options
  const port = options.port ?? (await freePort())
  const directory = await mkdtemp(path.join(tmpdir(), 'extauth-redis-'))
  const file = path.join(directory, 'redis.conf')
  const own = isSentinel ? [] : ['save ""', 'appendonly no']
  const lines = ['bind 127.0.0.1', 'daemonize no', `dir ${directory}`, ...ports(port), ...own, ...options.config]
  // It has passwords in it.
  await writeFile(file, `${lines.join('\n')}\n`, { mode: 0o600 })

  let child: ChildProcess | undefined
  let printed = ''
  const start = async (): Promise<void> => {
    const started = spawn(binary, [file, ...(isSentinel ? ['--sentinel'] : [])], {
      stdio: ['ignore', 'pipe', 'pipe'],
      // Ctrl-C is for us: it goes when those have gone that use it.
      detached: true,
    })
    child = started
    running.add(started)
    let problem: string | undefined
    const keep = (chunk: Buffer) => void (printed = (printed + chunk.toString()).slice(-MOST_OUTPUT))
    started.stdout.on('data', keep)
    started.stderr.on('data', keep)
    started.on('error', (error) => (problem = error.message))
    started.on('exit', () => {
      running.delete(started)
      problem ??= printed
    })
    await untilItListens(port, () => problem)
  }
  const kill = async (): Promise<void> => {
    const ending = child
    if (ending?.pid === undefined || ending.exitCode !== null || ending.signalCode !== null) return
    const exited = new Promise<void>((resolve) => ending.once('exit', () => resolve()))
    ending.kill('SIGCONT')
    ending.kill('SIGKILL')
    await exited
  }
  const close = async (): Promise<void> => {
    await kill()
    await rm(directory, { recursive: true, force: true })
  }

  try {
    await start()
  } catch (error) {
    await close()
    throw error
  }
  return {
    port,
    kill,
    pause: () => void child?.kill('SIGSTOP'),
    resume: () => void child?.kill('SIGCONT'),
    restart: start,
    output: () => printed,
    close,
  }
}

async function untilItListens(port: number, problem: () => string | undefined): Promise<void> {
  const giveUpAt = after(monotonicNow(), LONGEST_START_MS)
  while (monotonicNow() < giveUpAt) {
    const ended = problem()
    if (ended !== undefined) throw new Error(`redis-server ended at once: ${ended.trim()}`)
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => (socket.destroy(), resolve(true)))
      socket.on('error', () => resolve(false))
    })
    if (isOpen) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(`nothing answers on port ${port}`)
}
