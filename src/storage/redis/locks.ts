import { randomBytes } from 'node:crypto'
import { type Metrics, type MonotonicMs, monotonicNow } from '../../core/index.ts'
import { check, type HeldLock, type ValueOrLock } from '../port.ts'
import type { LastingWrite, Link } from './link.ts'
import { decodeKept, encodeRecord, newVersion, versionArgument } from './records.ts'
import { GET_OR_LOCK, LOCK, PUT_AND_RELEASE, RELEASE, RENEW, runScript } from './scripts.ts'

const FIRST_LOOK_MS = 10
const LONGEST_LOOK_MS = 200
/** A free lock keeps its last fence for this time, in case a clock is set back. */
const FENCE_MEMORY_MS = 60_000

export interface RedisLocks {
  acquire(key: string, ttlMs: number, waitMs: number): Promise<HeldLock | undefined>
  /** Returns the record if its version is not `staleVersion`, else the lock, else `busy`. */
  acquireUnless(record: string, staleVersion: string | undefined, key: string, ttlMs: number): Promise<ValueOrLock>
}

/** A lock of this replica, with its release together with a write. */
interface OwnLock {
  readonly held: HeldLock
  readonly finish: (record: string, value: Buffer, ttlMs: number) => Promise<void>
}

const newOwner = (): string => randomBytes(12).toString('base64url')

/** Locks with owners. Acquisition, check and renewal are scripts, so that only the owner changes a lock. */
export function createRedisLocks(link: Link, write: LastingWrite, metrics: Metrics, random: () => number): RedisLocks {
  const waits = metrics.histogram(
    'extauth_store_lock_wait_seconds',
    'How long a lock was waited for.',
    ['outcome'],
    [0.005, 0.05, 0.5, 5],
  )

  const hold = (key: string, owner: string, fence: number, ttlMs: number, askedAt: MonotonicMs): OwnLock => {
    const mark = `${fence}:${owner}`
    // Counted from before the request: the store starts its count later.
    let endsAt = askedAt + ttlMs
    let isOver = false
    const end = () => {
      isOver = true
      clearInterval(renewing)
    }
    const renew = async () => {
      const sentAt = monotonicNow()
      const reply = await link.use((connection) => runScript(connection, RENEW, [key], [mark, ttlMs]), {
        isRepeatable: true,
      })
      if (reply === 1) endsAt = sentAt + ttlMs
      else end()
    }
    const renewing = setInterval(
      () => {
        if (monotonicNow() >= endsAt) return end()
        renew().catch(() => undefined)
      },
      Math.max(1, Math.floor(ttlMs / 3)),
    )
    renewing.unref()
    const marks = [mark, `${fence}:`, FENCE_MEMORY_MS] as const
    const letGo = async () => {
      const sent = link.use((connection) => runScript(connection, RELEASE, [key], marks), { isRepeatable: true })
      await sent.catch(() => undefined)
    }
    const finish: OwnLock['finish'] = async (record, value, valueTtlMs) => {
      end()
      try {
        check.value(value)
        check.ttl(valueTtlMs)
        const args = [...marks, encodeRecord(newVersion(), value), valueTtlMs]
        await write((connection) => runScript(connection, PUT_AND_RELEASE, [key, record], args), { isRepeatable: true })
      } catch (error) {
        void letGo()
        throw error
      }
    }
    const held: HeldLock = {
      fence,
      get isHeld() {
        return !isOver && monotonicNow() < endsAt
      },
      async release() {
        if (isOver) return
        end()
        await letGo()
      },
    }
    return { held, finish }
  }

  return {
    async acquireUnless(record, staleVersion, key, ttlMs) {
      const owner = newOwner()
      const askedAt = monotonicNow()
      const args = [owner, ttlMs, versionArgument(staleVersion)]
      const reply = await link.use((connection) => runScript(connection, GET_OR_LOCK, [key, record], args), {
        isRepeatable: true,
      })
      if (typeof reply === 'number' && reply > 0) {
        const { held, finish } = hold(key, owner, reply, ttlMs, askedAt)
        return { kind: 'lock', held: Object.assign(held, { finish: finish.bind(undefined, record) }) }
      }
      const stored = Array.isArray(reply) ? decodeKept(reply[0], reply[1]) : undefined
      return stored === undefined ? { kind: 'busy' } : { kind: 'value', stored }
    },
    async acquire(key, ttlMs, waitMs) {
      const owner = newOwner()
      const startedAt = monotonicNow()
      const waited = () => monotonicNow() - startedAt
      for (let lookMs = FIRST_LOOK_MS; ; lookMs = Math.min(LONGEST_LOOK_MS, lookMs * 1.5)) {
        const askedAt = monotonicNow()
        const fence = await link.use((connection) => runScript(connection, LOCK, [key], [owner, ttlMs]), {
          isRepeatable: true,
        })
        if (typeof fence === 'number' && fence > 0) {
          if (waitMs > 0) waits.with('got').observe(waited() / 1_000)
          return hold(key, owner, fence, ttlMs, askedAt).held
        }
        const leftMs = waitMs - waited()
        if (leftMs <= 0) {
          if (waitMs > 0) waits.with('gave up').observe(waited() / 1_000)
          return undefined
        }
        const pauseMs = Math.min(leftMs, lookMs * (0.5 + random()))
        await new Promise((resolve) => setTimeout(resolve, pauseMs))
      }
    },
  }
}
