import type { RedisRuntime } from './config.ts'
import type { Connection } from './connection.ts'
import { ReplyError } from './reply-errors.ts'

/** Maximum clock difference to the store, and so between replicas. */
export const MOST_APART_MS = 2_000

/** State of a server. */
export interface ServerLook {
  /** Reads `TIME` and `INFO memory`, logs each problem once, and never throws. */
  at(connection: Connection): Promise<void>
  /** Milliseconds by which its clock is ahead; undefined before the first response. */
  readonly clockAheadMs: number | undefined
  /** Problems besides the clock, as text. */
  readonly remark: string | undefined
  /** The user may not call `INFO`, so the eviction policy is unknown. */
  readonly isBlind: boolean
}

/** Checks the clock and the eviction policy: no live entry may be evicted. */
export function createServerLook({ clock, log, metrics }: RedisRuntime): ServerLook {
  const offset = metrics.gauge(
    'extauth_store_clock_offset_seconds',
    'Seconds by which the clock of the store is ahead, at the last connection.',
    [],
    'max',
  )
  const evicts = metrics.gauge(
    'extauth_store_evicts',
    'Whether the store throws keys away when its memory is full (a maxmemory-policy other than noeviction).',
    [],
    'max',
  )
  let wasApart = false
  let clockAheadMs: number | undefined
  let policy: string | undefined
  let isBlind = false

  const lookAtClock = async (connection: Connection) => {
    const sentAt = clock.now()
    const reply = await connection.call(['time']).catch(() => undefined)
    if (!Array.isArray(reply)) return
    const storeMs = Number(String(reply[0])) * 1_000 + Number(String(reply[1])) / 1_000
    if (!Number.isFinite(storeMs)) return
    const tripMs = clock.now() - sentAt
    const aheadMs = storeMs - sentAt - tripMs / 2
    clockAheadMs = aheadMs
    offset.with().set(aheadMs / 1_000)
    const isApart = Math.abs(aheadMs) - tripMs / 2 > MOST_APART_MS
    if (isApart && !wasApart) {
      const seconds = Math.round(aheadMs / 1_000)
      log.warn({ seconds, ...connection.endpoint }, 'store clock differs by more than 2 s, synchronize clocks')
    }
    wasApart = isApart
  }

  const lookAtMemory = async (connection: Connection) => {
    const reply = await connection.call(['info', 'memory']).catch((error: unknown) => error)
    if (reply instanceof ReplyError && !isBlind) {
      isBlind = true
      log.warn({ ...connection.endpoint }, 'store user may not call INFO, eviction policy unknown (grant +info)')
    }
    if (!Buffer.isBuffer(reply)) return
    isBlind = false
    const next = /^maxmemory_policy:([a-z-]{1,40})\r?$/m.exec(reply.toString('latin1'))?.[1]
    evicts.with().set(next === undefined || next === KEEPS ? 0 : 1)
    if (next !== policy && next !== undefined && next !== KEEPS)
      log.warn(
        { policy: next, ...connection.endpoint },
        'store evicts data when its memory is full, set maxmemory-policy noeviction',
      )
    policy = next
  }

  return {
    async at(connection) {
      await Promise.all([lookAtClock(connection), lookAtMemory(connection)])
    },
    get clockAheadMs() {
      return clockAheadMs
    },
    get remark() {
      return policy === undefined || policy === KEEPS
        ? undefined
        : `its maxmemory-policy is ${policy}: it evicts keys when its memory is full`
    },
    get isBlind() {
      return isBlind
    },
  }
}

const KEEPS = 'noeviction'
