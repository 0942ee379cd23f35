import type { RedisRuntime } from './config.ts'
import type { Connection } from './connection.ts'
import { ReplyError } from './reply-errors.ts'

/** Replicas' clocks should be nearer to each other than this; the store's is the one that all of them see. */
export const MOST_APART_MS = 2_000

/** What a server says of itself. */
export interface ServerLook {
  /** Asks a server (`TIME`, `INFO memory`), says once in the log what should be otherwise, and never throws. */
  at(connection: Connection): Promise<void>
  /** By how many milliseconds its clock is ahead of ours; undefined before the first answer. */
  readonly clockAheadMs: number | undefined
  /** What should be otherwise, for people; the clock aside. */
  readonly remark: string | undefined
  /** The user may not ask `INFO`: whether the server evicts is not known. */
  readonly isBlind: boolean
}

/** Looks at the clock, and at whether keys are thrown away when the memory is full: everything in it was promised. */
export function createServerLook({ clock, log, metrics }: RedisRuntime): ServerLook {
  const offset = metrics.gauge(
    'extauth_store_clock_offset_seconds',
    'By how much the clock of the store is ahead of ours, as of the last connection.',
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
      log.warn(
        { seconds, ...connection.endpoint },
        'the clock of the store is more than 2 s from ours: synchronise clocks',
      )
    }
    wasApart = isApart
  }

  const lookAtMemory = async (connection: Connection) => {
    const reply = await connection.call(['info', 'memory']).catch((error: unknown) => error)
    if (reply instanceof ReplyError && !isBlind) {
      isBlind = true
      log.warn(
        { ...connection.endpoint },
        'the store does not let its user ask INFO: whether it evicts is not known (+info)',
      )
    }
    if (!Buffer.isBuffer(reply)) return
    isBlind = false
    const next = /^maxmemory_policy:([a-z-]{1,40})\r?$/m.exec(reply.toString('latin1'))?.[1]
    evicts.with().set(next === undefined || next === KEEPS ? 0 : 1)
    if (next !== policy && next !== undefined && next !== KEEPS)
      log.warn(
        { policy: next, ...connection.endpoint },
        'the store throws away what is in it when its memory is full: set maxmemory-policy noeviction',
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
        : `its maxmemory-policy is ${policy}: it throws keys away when its memory is full`
    },
    get isBlind() {
      return isBlind
    },
  }
}

const KEEPS = 'noeviction'
