import type { StoreListener } from './port.ts'

/** The listeners of channels in this process. */
export interface Listeners {
  add(channel: string, listener: StoreListener): { close(): void }
  /** An error of one listener does not affect the others. */
  /** Returns the number of listeners. */
  message(channel: string, message: string): number
  /** For one channel, or for all. */
  gap(channel?: string): void
  channels(): readonly string[]
}

export interface ListenersOptions {
  /** Called for the first listener of a channel. */
  onFirst?(channel: string): void
  /** Called after the last listener of a channel is removed. */
  onLast?(channel: string): void
  onError(error: unknown): void
}

/** Holds the listeners of all channels; `onFirst` and `onLast` report what to subscribe to. */
export function createListeners(options: ListenersOptions): Listeners {
  const byChannel = new Map<string, Set<StoreListener>>()

  const notify = (listeners: Iterable<StoreListener>, call: (listener: StoreListener) => void) => {
    // A copy: a listener may add or remove others.
    const now = Array.from(listeners)
    for (const listener of now) {
      try {
        call(listener)
      } catch (error) {
        options.onError(error)
      }
    }
  }

  return {
    add(channel, listener) {
      const listeners = byChannel.get(channel) ?? new Set()
      byChannel.set(channel, listeners)
      if (listeners.size === 0) options.onFirst?.(channel)
      // A new object, so that one listener may be added twice and removed once.
      const own: StoreListener = { onMessage: (text) => listener.onMessage(text), onGap: () => listener.onGap() }
      listeners.add(own)
      return {
        close() {
          if (!listeners.delete(own) || listeners.size > 0) return
          byChannel.delete(channel)
          options.onLast?.(channel)
        },
      }
    },
    message(channel, text) {
      const listeners = byChannel.get(channel)
      const count = listeners?.size ?? 0
      notify(listeners ?? [], (listener) => listener.onMessage(text))
      return count
    },
    gap(channel) {
      const some = channel === undefined ? byChannel.values() : [byChannel.get(channel) ?? []]
      for (const listeners of some) notify(listeners, (listener) => listener.onGap())
    },
    channels: () => [...byChannel.keys()],
  }
}
