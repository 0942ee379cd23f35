import type { Store, Subscription } from './port.ts'

/** The subscriptions that were made through one store. */
export interface Subscriptions {
  readonly subscribe: Store['subscribe']
  /** Ends all of them; ending one twice is fine. */
  close(): void
}

/** Keeps what `subscribe` gives, so that who listened ends with the store, whoever else goes on with what is behind it. */
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
