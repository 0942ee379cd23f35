import type { Log } from '../../core/index.ts'
import { createListeners } from '../listeners.ts'
import type { StoreListener } from '../port.ts'
import type { Connection } from './connection.ts'
import type { Link, LinkOptions } from './link.ts'

export interface Messages {
  subscribe(channel: string, listener: StoreListener): { close(): void }
  /** Why nothing can be heard, for people; undefined while it can, and while nobody listens. */
  readonly problem: string | undefined
  close(): void
}

/** Listens on a connection of its own, made with the first listener; `onGap` is said after each new one. */
export function createMessages(log: Log, open: (hooks: Required<Pick<LinkOptions, 'onConnection'>>) => Link): Messages {
  let link: Link | undefined
  let current: Connection | undefined

  const listeners = createListeners({
    onFirst(channel) {
      link ??= open({ onConnection })
      const connection = current
      if (connection === undefined) return
      // What was said before the subscription stands may be missed, like what was said before a loss.
      connection.subscribe(channel).then(
        () => listeners.gap(channel),
        () => connection.destroy(),
      )
    },
    onLast(channel) {
      const connection = current
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
      if (current === connection) current = undefined
    })
    for (const channel of listeners.channels()) await connection.subscribe(channel)
    listeners.gap()
  }

  return {
    subscribe: (channel, listener) => listeners.add(channel, listener),
    get problem() {
      return link?.problem
    },
    close: () => link?.close(),
  }
}
