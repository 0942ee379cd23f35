import { type Log, monotonicNow } from '../../core/index.ts'
import { createListeners } from '../listeners.ts'
import type { StoreListener, Subscription } from '../port.ts'
import type { Connection } from './connection.ts'
import type { Link, LinkOptions } from './link.ts'

export interface Messages {
  subscribe(channel: string, listener: StoreListener): Subscription
  /** Why no messages have been received for two seconds, as text; undefined while they are, and without listeners. */
  readonly problem: string | undefined
  close(): void
}

/** A faster reconnect is not reported. */
const PROBLEM_AFTER_MS = 2_000

/** Subscribes on a dedicated connection, opened for the first listener; calls `onGap` after each reconnect. */
export function createMessages(log: Log, open: (hooks: Required<Pick<LinkOptions, 'onConnection'>>) => Link): Messages {
  let link: Link | undefined
  let current: Connection | undefined
  /** Channels to which the current connection is subscribed. */
  const active = new Set<string>()
  let inactiveSince = monotonicNow()

  const listeners = createListeners({
    onFirst(channel) {
      if (link === undefined) inactiveSince = monotonicNow()
      link ??= open({ onConnection })
      const connection = current
      if (connection === undefined) return
      // Messages before the subscription may be missed, as after a loss.
      connection.subscribe(channel).then(
        () => {
          if (current === connection) active.add(channel)
          return listeners.gap(channel)
        },
        () => connection.destroy(),
      )
    },
    onLast(channel) {
      const connection = current
      active.delete(channel)
      connection?.unsubscribe(channel).catch(() => connection.destroy())
    },
    onError(error) {
      log.error({ error: error instanceof Error ? error.name : 'unknown' }, 'store listener failed')
    },
  })

  const onConnection = async (connection: Connection) => {
    connection.onMessage((channel, message) => listeners.message(channel, message))
    current = connection
    void connection.closed.finally(() => {
      if (current !== connection) return
      current = undefined
      if (active.size > 0) inactiveSince = monotonicNow()
      active.clear()
    })
    for (const channel of listeners.channels()) {
      await connection.subscribe(channel)
      active.add(channel)
    }
    listeners.gap()
  }

  return {
    subscribe(channel, listener) {
      const added = listeners.add(channel, listener)
      return {
        get isActive() {
          return current?.isOpen === true && active.has(channel)
        },
        close: () => added.close(),
      }
    },
    get problem() {
      const isLong = monotonicNow() - inactiveSince >= PROBLEM_AFTER_MS
      return isLong ? link?.problem : undefined
    },
    close: () => link?.close(),
  }
}
