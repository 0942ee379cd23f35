import type { RedisRuntime } from './config.ts'
import type { Connection } from './connection.ts'

/** Replicas' clocks should be nearer to each other than this; the store's is the one that all of them see. */
const MOST_APART_MS = 2_000

/** Compares this process's clock with the store's (`TIME`), warns once of more than 2 s, and never throws. */
export function createClockCheck({ clock, log, metrics }: RedisRuntime): (connection: Connection) => Promise<void> {
  const offset = metrics.gauge(
    'extauth_store_clock_offset_seconds',
    'By how much the clock of the store is ahead of ours, as of the last connection.',
    [],
    'max',
  )
  let wasApart = false

  return async (connection) => {
    const sentAt = clock.now()
    const reply = await connection.call(['time']).catch(() => undefined)
    if (!Array.isArray(reply)) return
    const storeMs = Number(String(reply[0])) * 1_000 + Number(String(reply[1])) / 1_000
    if (!Number.isFinite(storeMs)) return
    const tripMs = clock.now() - sentAt
    const aheadMs = storeMs - sentAt - tripMs / 2
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
}
