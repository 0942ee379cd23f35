import type { ChildProcess } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../../lab/free-port.ts'
import { spawnExtauth } from '../../test/support/e2e/process.ts'

const PROBE = path.join(import.meta.dirname, 'probe.ts')
const START_MS = 300_000
/** Takes seconds for each 100 MiB, in which the process does nothing else; minutes on a busy machine. */
const HEAP_MS = 900_000
const POLL_MS = 100
/** Lines that are kept of what it printed. */
const MAX_LAST = 40

/** A proxy, or a registry, in a process of its own, which can be ended and started again at the same address. */
export interface Replica {
  readonly name: string
  readonly port: number
  readonly url: string
  readonly adminUrl: string
  readonly pid: number
  /** How often it was started. */
  readonly starts: number
  /** Set while it is ended on purpose; an end at another time is a failure of it. */
  isMeantToEnd: boolean
  signal(name: NodeJS.Signals): void
  /** Sends SIGTERM or SIGKILL and waits until it has ended; gives how. */
  end(name: 'SIGTERM' | 'SIGKILL'): Promise<number | string>
  start(): Promise<void>
  /** Stops or resumes reading its output. */
  holdLog(isHeld: boolean): void
  /** Memory after the last full garbage collection; undefined before the first. */
  readonly liveBytes: number | undefined
  /** Writes all that it holds, after a full collection of garbage, and gives the file. @throws {Error} when it does not come */
  writeHeap(): Promise<string>
}

export interface ReplicaOptions {
  readonly name: string
  readonly bin: string
  /** Arguments of `extauth`, given its two addresses. */
  readonly command: (listen: string, admin: string) => readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** Modules that are loaded into it before the program. */
  readonly modules?: readonly string[]
  /** Where it writes what it holds. */
  readonly heapDirectory: string
  /** Each line that it prints, to standard output or error. */
  readonly onLine: (line: string) => void
  /** `last` is its last output: an uncaught error is some lines long. */
  readonly onEnd: (how: number | string, isMeant: boolean, last: string) => void
}

/** Prepares a process of the program; `start` runs it. */
export async function createReplica(options: ReplicaOptions): Promise<Replica> {
  const { name, bin, command, modules = [], heapDirectory } = options
  const [port, adminPort] = [await freePort(), await freePort()]
  const probe = path.join(heapDirectory, name)
  const env = {
    ...options.env,
    NODE_OPTIONS: [PROBE, ...modules].map((module) => `--import=${module}`).join(' '),
    ENDURE_PROBE: probe,
  }
  const args = command(`127.0.0.1:${port}`, `127.0.0.1:${adminPort}`)
  let child: ChildProcess | undefined
  let ended: Promise<number | string> = Promise.resolve(0)
  let starts = 0

  const replica: Replica = {
    name,
    port,
    url: `http://127.0.0.1:${port}`,
    adminUrl: `http://127.0.0.1:${adminPort}`,
    isMeantToEnd: false,
    get pid() {
      return child?.pid ?? 0
    },
    get starts() {
      return starts
    },
    signal: (wanted) => void child?.kill(wanted),
    end: (wanted) => {
      replica.isMeantToEnd = true
      child?.kill(wanted)
      return ended
    },
    holdLog(isHeld) {
      for (const stream of [child?.stdout, child?.stderr])
        if (isHeld) stream?.pause()
        else stream?.resume()
    },
    get liveBytes() {
      return liveBytes(`${probe}.live`)
    },
    async writeHeap() {
      child?.kill('SIGWINCH')
      const file = `${probe}.heapsnapshot`
      const hasEnded = (): boolean => child?.exitCode !== null || child.signalCode !== null
      for (const giveUpAt = performance.now() + HEAP_MS; performance.now() < giveUpAt; await delay(POLL_MS)) {
        if (existsSync(file)) return file
        if (hasEnded()) break
      }
      throw new Error(`${name} did not write what it holds`)
    },
    async start() {
      replica.isMeantToEnd = false
      starts += 1
      const started = spawnExtauth(args, ['ignore', 'pipe', 'pipe'], { program: bin, env })
      child = started
      const last: string[] = []
      for (const stream of [started.stdout, started.stderr])
        if (stream !== null)
          createInterface({ input: stream }).on('line', (line) => {
            if (last.push(line) > MAX_LAST) last.shift()
            options.onLine(line)
          })
      ended = new Promise((resolve) => {
        started.once('close', (code, signal) => {
          const how = signal ?? code ?? -1
          options.onEnd(how, replica.isMeantToEnd, last.join('\n'))
          resolve(how)
        })
      })
      await untilReady(replica.adminUrl, () => (started.exitCode === null ? undefined : last.join('\n')))
    },
  }
  return replica
}

function liveBytes(file: string): number | undefined {
  try {
    return Number(readFileSync(file, 'utf8'))
  } catch {
    return undefined
  }
}

async function untilReady(adminUrl: string, problem: () => string | undefined): Promise<void> {
  const giveUpAt = performance.now() + START_MS
  while (performance.now() < giveUpAt) {
    const ended = problem()
    if (ended !== undefined) throw new Error(`a replica ended at its start: ${ended}`)
    const isReady = await fetch(`${adminUrl}/readiness`, { signal: AbortSignal.timeout(2_000) }).then(
      async (response) => (await response.arrayBuffer(), response.status === 200),
      () => false,
    )
    if (isReady) return
    await delay(POLL_MS)
  }
  throw new Error(`a replica was not ready after ${START_MS / 1000} s`)
}
