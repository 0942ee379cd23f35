import type { Store, Subscription } from './port.ts'

/** The subscriptions of one store. */
export interface Subscriptions {
  readonly subscribe: Store['subscribe']
  /** Ends all subscriptions; may be called repeatedly. */
  close(): void
}

/** Records subscriptions, so that they end with the store, even if others share its connection. */
export function createSubscriptions(subscribe: Store['subscribe']): Subscriptions {
  const open = new Set<Subscription>()
  return {
    subscribe(channel, listener) {
      const subscription = subscribe(channel, listener)
      open.add(subscription)
      return {
        get isActive() {
          return subscription.isActive
        },
        close() {
          open.delete(subscription)
          subscription.close()
        },
      }
    },
    close() {
      for (const subscription of open) subscription.close()
      open.clear()
    },
  }
}
