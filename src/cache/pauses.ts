import { type Clock, isDuring, type Pause } from '../core/index.ts'
import { createTtlLru } from './ttl-lru.ts'

/** What is known for a while, so that it is not asked again; no longer than that, also when the clock was set back. */
export interface Pauses<V> {
  get(key: string): V | undefined
  /** Takes the place of what was there; `forMs` in milliseconds. */
  set(key: string, value: V, forMs: number): void
  delete(key: string): void
  clear(): void
}

/** At most `maxEntries` at a time; the least recently used one goes first. */
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
