import { setImmediate as settled } from 'node:timers/promises'
import type { SharedStore } from '../../../../src/cache/index.ts'
import { StoreError } from '../../../../src/storage/index.ts'

type SharedLock = Extract<Awaited<ReturnType<SharedStore['getOrLock']>>, { kind: 'lock' }>['held']

/** Gone refuses at once, silent answers only when it is fine again, full refuses what writes. */
export type Mood = 'fine' | 'gone' | 'silent' | 'full'

export interface MoodyStore {
  readonly store: SharedStore
  /** How many operations it was asked, and how many of them were writes of a value. */
  asked(): number
  puts(): number
  /** Each answer comes so much later. */
  delayMs: number
  become(next: Mood): void
}

/** A store in front of `inner` that is not always well. */
export function createMoodyStore(inner: SharedStore): MoodyStore {
  let mood: Mood = 'fine'
  let waiting: (() => void)[] = []
  let asked = 0
  let puts = 0
  const felt = async <T>(operation: () => Promise<T>, isWrite = false): Promise<T> => {
    asked += 1
    if (mood === 'gone') throw new StoreError('unavailable')
    if (mood === 'full' && isWrite) throw new StoreError('refused', { code: 'OOM', cause: 'OOM' })
    if (mood === 'silent') await new Promise<void>((resolve) => waiting.push(resolve))
    // Requests are sent when the event loop runs, not before.
    if (moody.delayMs > 0) await settled()
    if (moody.delayMs > 0) await new Promise((resolve) => setTimeout(resolve, moody.delayMs))
    return operation()
  }
  const store: SharedStore = {
    get: (key) => felt(() => inner.get(key)),
    put: (...args) => ((puts += 1), felt(() => inner.put(...args), true)),
    putIfAbsent: (...args) => felt(() => inner.putIfAbsent(...args), true),
    compareAndSet: (...args) => felt(() => inner.compareAndSet(...args), true),
    async getOrLock(...args) {
      const found = await felt(() => inner.getOrLock(...args), true)
      if (found.kind !== 'lock') return found
      const { held } = found
      const finish: SharedLock['finish'] = (...last) => felt(() => held.finish(...last), true)
      return { kind: 'lock', held: { finish, release: () => held.release() } }
    },
    publish: (...args) => felt(() => inner.publish(...args)),
    subscribe: (...args) => inner.subscribe(...args),
    health: () => ({ isUp: mood !== 'gone' }),
  }
  const moody: MoodyStore = {
    store,
    delayMs: 0,
    asked: () => asked,
    puts: () => puts,
    become(next) {
      mood = next
      const resolvers = waiting
      waiting = []
      for (const resolve of resolvers) resolve()
    },
  }
  return moody
}
