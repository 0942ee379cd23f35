import type { Log } from '../../core/index.ts'
import { createListeners } from '../listeners.ts'
import type { StoreListener, Subscription } from '../port.ts'
import type { Connection } from './connection.ts'
import type { Link, LinkOptions } from './link.ts'

export interface Messages {
  subscribe(channel: string, listener: StoreListener): Subscription
  /** Why no messages have been received for two seconds, for people; undefined while they are, and without a listener. */
  readonly problem: string | undefined
  close(): void
}

/** A connection that is made again sooner is no problem to report. */
const PROBLEM_AFTER_MS = 2_000

/** Listens on a connection of its own, made with the first listener; `onGap` is said after each new one. */
export function createMessages(log: Log, open: (hooks: Required<Pick<LinkOptions, 'onConnection'>>) => Link): Messages {
  let link: Link | undefined
  let current: Connection | undefined
  /** The channels to which the current connection is subscribed. */
  const active = new Set<string>()
  let inactiveSince = performance.now()

  const listeners = createListeners({
    onFirst(channel) {
      if (link === undefined) inactiveSince = performance.now()
      link ??= open({ onConnection })
      const connection = current
      if (connection === undefined) return
      // What was said before the subscription stands may be missed, like what was said before a loss.
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
      log.error({ error: error instanceof Error ? error.name : 'unknown' }, 'a listener of the store failed')
    },
  })

  const onConnection = async (connection: Connection) => {
    connection.onMessage((channel, message) => listeners.message(channel, message))
    current = connection
    void connection.closed.finally(() => {
      if (current !== connection) return
      current = undefined
      if (active.size > 0) inactiveSince = performance.now()
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
      const isLong = performance.now() - inactiveSince >= PROBLEM_AFTER_MS
      return isLong ? link?.problem : undefined
    },
    close: () => link?.close(),
  }
}
