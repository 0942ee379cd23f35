import { execFile } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { operate } from '../../test/support/redis/operator.ts'
import type { Part } from '../oracle/excuses.ts'
import type { Fault } from './fault.ts'

const run = promisify(execFile)
const STORE: readonly Part[] = ['store', 'own server']
/** For what a process needs while it has none left: some connections are always closed and opened again. */
const SPARE_DESCRIPTORS = 3
const CLOCK_MS = 30_000
/** Far more than `--drain-grace` and what may be in flight. */
const LONGEST_END_MS = 60_000
const POLL_MS = 20
const [FAILOVER_MS, FAILOVER_POLL_MS] = [60_000, 500]

const replicaEnds = (signal: 'SIGKILL' | 'SIGTERM'): Fault => ({
  name: `replica ${signal}`,
  parts: [signal === 'SIGTERM' ? 'drain' : 'replica', 'own server'],
  lastsMs: [7_000, 9_000],
  async begin({ replicas: [, other] }) {
    const ended = other.end(signal)
    if (signal === 'SIGKILL') await ended
    return async () => {
      const late = new AbortController()
      const isLate = delay(LONGEST_END_MS, true, { signal: late.signal }).catch(() => false)
      const isStuck = await Promise.race([ended.then(() => false), isLate])
      late.abort()
      if (isStuck) await other.end('SIGKILL')
      await other.start()
      if (isStuck) throw new Error(`${other.name} did not end within ${LONGEST_END_MS / 1_000} s`)
    }
  },
})

const replicaStops: Fault = {
  name: 'replica SIGSTOP',
  parts: ['replica', 'pause', 'own server'],
  lastsMs: [2_000, 8_000],
  begin({ replicas }, random) {
    const replica = random.pick(replicas)
    replica.signal('SIGSTOP')
    return Promise.resolve(() => replica.signal('SIGCONT'))
  },
}

const noDescriptors: Fault = {
  name: 'no descriptors left',
  parts: ['descriptors', 'own server'],
  lastsMs: [3_000, 8_000],
  async begin({ replicas: [, { pid }] }) {
    const limit = async (soft: string): Promise<void> =>
      void (await run('prlimit', [`--pid=${pid}`, `--nofile=${soft}:`]))
    const before = (await run('prlimit', [`--pid=${pid}`, '--nofile', '--output=SOFT', '--noheadings'])).stdout.trim()
    await limit(String(readdirSync(`/proc/${pid}/fd`).length + SPARE_DESCRIPTORS))
    return () => limit(before)
  },
}

const clockMoves = (seconds: number): Fault => ({
  name: `clock of a replica ${seconds > 0 ? '+' : ''}${seconds} s`,
  parts: ['clock', 'own token', 'own keys', 'own server'],
  clock: { replica: 'replica-2', byMs: seconds * 1_000 },
  lastsMs: [5_000, 10_000],
  async begin({ replicas: [, other], clockFile }) {
    const move = async (off: number): Promise<void> => {
      await writeFile(clockFile, String(off))
      await rm(`${clockFile}.taken`, { force: true })
      other.signal('SIGUSR2')
      // A machine without time lets it wait: until then the fault is not over.
      for (let left = CLOCK_MS; !existsSync(`${clockFile}.taken`); left -= POLL_MS) {
        if (left <= 0) throw new Error(`${other.name} did not take the clock over`)
        await delay(POLL_MS)
      }
    }
    await move(seconds * 1_000)
    return () => move(0)
  },
})

/** As when the disk of the log is full: nothing is read any more, and the proxy must continue. */
const logStops: Fault = {
  name: 'log unread',
  parts: [],
  lastsMs: [4_000, 9_000],
  begin({ replicas }, random) {
    const replica = random.pick(replicas)
    replica.holdLog(true)
    return Promise.resolve(() => replica.holdLog(false))
  },
}

/** Redis without memory or disk: it reads, and rejects writes. */
const storeFull: Fault = {
  name: 'Redis takes no more',
  parts: STORE,
  lastsMs: [3_000, 8_000],
  async begin({ store }) {
    const ports = store.deployment.nodes.map(({ port }) => port)
    const limit = async (bytes: string): Promise<void> => {
      for (const port of ports) await operate(port, ['CONFIG', 'SET', 'maxmemory', bytes]).catch(() => undefined)
    }
    await limit('1')
    return () => limit('0')
  },
}

const masterGone = (how: 'killed' | 'stopped'): Fault => ({
  name: `Redis master ${how}`,
  parts: STORE,
  lastsMs: [6_000, 10_000],
  async begin({ store }) {
    const index = (await store.master()) ?? 0
    const node = store.deployment.nodes[index]
    if (how === 'stopped') {
      node?.pause()
      return () => node?.resume()
    }
    await node?.kill()
    return async () => {
      // It comes back with nothing. Were it master still, all would be lost: what a Redis without persistence must not do.
      for (let left = FAILOVER_MS; left > 0; left -= FAILOVER_POLL_MS) {
        if (((await store.master()) ?? index) !== index) break
        await delay(FAILOVER_POLL_MS)
      }
      await node?.restart()
    }
  },
})

/** Faults of processes: of replicas, and of Redis. */
export const PROCESS_FAULTS: readonly Fault[] = [
  replicaEnds('SIGKILL'),
  replicaEnds('SIGTERM'),
  replicaStops,
  noDescriptors,
  clockMoves(90),
  clockMoves(-90),
  clockMoves(240),
  logStops,
  storeFull,
  masterGone('killed'),
  masterGone('stopped'),
]
