import type { StoreListener } from './port.ts'

/** Who listens to which channel in this process. */
export interface Listeners {
  add(channel: string, listener: StoreListener): { close(): void }
  /** One listener that throws keeps the others from nothing. */
  /** Gives the number of listeners. */
  message(channel: string, message: string): number
  /** On one channel, or on all. */
  gap(channel?: string): void
  channels(): readonly string[]
}

export interface ListenersOptions {
  /** The first listener of a channel came. */
  onFirst?(channel: string): void
  /** The last listener of a channel went. */
  onLast?(channel: string): void
  onError(error: unknown): void
}

/** Keeps the listeners of all channels; `onFirst` and `onLast` say what to subscribe to where that is somebody else's work. */
export function createListeners(options: ListenersOptions): Listeners {
  const byChannel = new Map<string, Set<StoreListener>>()

  const tell = (listeners: Iterable<StoreListener>, say: (listener: StoreListener) => void) => {
    // Those of this moment: a listener may add or close others.
    const now = Array.from(listeners)
    for (const listener of now) {
      try {
        say(listener)
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
      // Its own object, so that one listener may be added twice and removed once.
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
      tell(listeners ?? [], (listener) => listener.onMessage(text))
      return count
    },
    gap(channel) {
      const some = channel === undefined ? byChannel.values() : [byChannel.get(channel) ?? []]
      for (const listeners of some) tell(listeners, (listener) => listener.onGap())
    },
    channels: () => [...byChannel.keys()],
  }
}
