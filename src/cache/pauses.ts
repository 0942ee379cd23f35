import { type Clock, isDuring, type Pause } from '../core/index.ts'
import { createTtlLru } from './ttl-lru.ts'

/** Values cached for a time, even if the clock is set back. */
export interface Pauses<V> {
  get(key: string): V | undefined
  /** Replaces a value; `forMs` in milliseconds. */
  set(key: string, value: V, forMs: number): void
  delete(key: string): void
  clear(): void
}

/** At most `maxEntries`; the least recently used is evicted first. */
export function createPauses<V>({ clock, maxEntries }: { clock: Clock; maxEntries: number }): Pauses<V> {
  const kept = createTtlLru<Pause & { readonly value: V }>({ clock, maxEntries })
  return {
    get(key) {
      const pause = kept.get(key)
      return isDuring(pause, clock.now()) ? pause.value : undefined
    },
    set(key, value, forMs) {
      const sinceMs = clock.now()
      const untilMs = sinceMs + forMs
      kept.set(key, { sinceMs, untilMs, value }, untilMs)
    },
    delete: (key) => void kept.delete(key),
    clear: () => kept.clear(),
  }
}
