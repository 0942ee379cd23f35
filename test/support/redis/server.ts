import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect, createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { redisServer } from './binaries.ts'

/** A Redis or Sentinel process of a test. */
export interface RedisProcess {
  readonly port: number
  /** Ends it like `kill -9`. */
  kill(): Promise<void>
  /** Stops it from doing anything, connections stay (SIGSTOP), and lets it go on. */
  pause(): void
  resume(): void
  /** Starts it again on the same port with the same files. */
  restart(): Promise<void>
  /** What it has printed. */
  output(): string
  close(): Promise<void>
}

export interface RedisProcessOptions {
  /** Lines of redis.conf; `port`, `bind` and `dir` come from here. */
  readonly config: readonly string[]
  readonly isSentinel?: boolean
  readonly tls?: { readonly cert: string; readonly key: string; readonly ca: string }
  /** Default: a free one. */
  readonly port?: number
}

/** A port of 127.0.0.1 that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** Starts a process in a directory of its own and waits until its port answers. */
export async function startRedis(options: RedisProcessOptions): Promise<RedisProcess> {
  const binary = await redisServer()
  const port = options.port ?? (await freePort())
  const directory = await mkdtemp(path.join(tmpdir(), 'extauth-redis-'))
  const file = path.join(directory, 'redis.conf')
  const { tls } = options
  const ports =
    tls === undefined
      ? [`port ${port}`]
      : [
          'port 0',
          `tls-port ${port}`,
          'tls-auth-clients no',
          'tls-replication yes',
          `tls-cert-file ${tls.cert}`,
          `tls-key-file ${tls.key}`,
          `tls-ca-cert-file ${tls.ca}`,
        ]
  const own = options.isSentinel === true ? [] : ['save ""', 'appendonly no']
  const lines = ['bind 127.0.0.1', 'daemonize no', `dir ${directory}`, ...ports, ...own, ...options.config]
  await writeFile(file, `${lines.join('\n')}\n`)

  let child: ChildProcess | undefined
  let printed = ''
  const exited = (process: ChildProcess) =>
    process.exitCode !== null || process.signalCode !== null
      ? Promise.resolve()
      : new Promise<void>((resolve) => process.once('exit', () => resolve()))

  const start = async () => {
    const started = spawn(binary, [file, ...(options.isSentinel === true ? ['--sentinel'] : [])], { stdio: 'pipe' })
    child = started
    started.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()))
    started.stderr.on('data', (chunk: Buffer) => (printed += chunk.toString()))
    await answers(port, () => {
      if (started.exitCode !== null) throw new Error(`redis-server ended at once:\n${printed}`)
    })
  }

  const kill = async () => {
    const ending = child
    if (ending === undefined) return
    ending.kill('SIGCONT')
    ending.kill('SIGKILL')
    await exited(ending)
  }

  await start()
  return {
    port,
    kill,
    pause: () => void child?.kill('SIGSTOP'),
    resume: () => void child?.kill('SIGCONT'),
    restart: start,
    output: () => printed,
    async close() {
      await kill()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

async function answers(port: number, check: () => void): Promise<void> {
  for (let tries = 0; tries < 600; tries += 1) {
    check()
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false))
      socket.on('connect', () => socket.destroy())
    })
    if (isOpen) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(`nothing answers on port ${port}`)
}
