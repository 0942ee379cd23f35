import { createTtlLru } from '../cache/index.ts'
import { type Clock, Failure } from '../core/index.ts'
import { storeFailure } from '../authserver/index.ts'
import { createSealedRecords, type Seal, type Store } from '../storage/index.ts'

/** Where the tokens of a connection are: the id of its session. */
export interface Pointer {
  readonly id: string
  readonly createdAtMs: number
}

/**
 * The current connection of each person and provider. The store knows only keyed hashes of them. All methods throw
 * `store_unavailable`.
 */
export interface Pointers {
  /** From the cache of this process only. */
  cached(name: string): Pointer | undefined
  find(name: string): Promise<Pointer | undefined>
  /** Replaces the pointer; returns the previous one. Exactly one of concurrent replacements is last. */
  replace(name: string, pointer: Pointer): Promise<Pointer | undefined>
  /** Deletes the pointer; returns it. */
  remove(name: string): Promise<Pointer | undefined>
  /** Removes the pointer to this session from the cache. */
  forget(name: string, id: string): void
}

/** The store keeps no key for longer; a pointer in use is written again in time. */
const KEPT_MS = 360 * 86_400_000
const TRIES = 8

export function createPointers(
  store: Store,
  seal: Seal,
  { clock, maxEntries }: { readonly clock: Clock; readonly maxEntries: number },
): Pointers {
  const records = createSealedRecords(seal)
  const cache = createTtlLru<Pointer>({ clock, maxEntries })
  const keyOf = (lookup: string): string => `connection:${lookup}`
  const keysOf = (name: string): readonly string[] => seal.lookupKeys('connection', name).map(keyOf)

  const guarded = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      throw storeFailure(error)
    }
  }
  const remember = (name: string, pointer: Pointer): Pointer => {
    cache.set(name, pointer, clock.now() + KEPT_MS)
    return pointer
  }
  const write = (key: string, version: string | undefined, pointer: Pointer): Promise<boolean> =>
    store.compareAndSet(key, version, records.write(key, pointer), KEPT_MS)

  /** The stored pointer, with its key and version; moved to the key of the first sealing secret. */
  const read = async (name: string) => {
    const [first = '', ...older] = keysOf(name)
    for (const key of [first, ...older]) {
      const stored = await store.get(key)
      const opened = await records.open<Pointer>(key, stored)
      if (stored === undefined || opened === undefined) continue
      if (key === first && opened.isCurrent && stored.leftMs > KEPT_MS / 2)
        return { key, version: stored.version, pointer: opened.record }
      if (key === first) await write(first, stored.version, opened.record)
      else if (await store.putIfAbsent(first, records.write(first, opened.record), KEPT_MS)) await store.delete(key)
      const moved = await store.get(first)
      const pointer = await records.read<Pointer>(first, moved)
      if (moved !== undefined && pointer !== undefined) return { key: first, version: moved.version, pointer }
    }
    return undefined
  }

  return {
    cached: (name) => cache.get(name),
    find: (name) =>
      guarded(async () => {
        const found = await read(name)
        return found && remember(name, found.pointer)
      }),
    replace: (name, pointer) =>
      guarded(async () => {
        for (let tries = 0; ; tries++) {
          const before = await read(name)
          const [key = ''] = keysOf(name)
          if (await write(key, before?.version, pointer)) {
            remember(name, pointer)
            return before?.pointer
          }
          if (tries === TRIES)
            throw new Failure('store_unavailable', { detail: 'the connection changes too often', retryAfterSeconds: 1 })
        }
      }),
    remove: (name) =>
      guarded(async () => {
        const before = await read(name)
        await store.delete(...keysOf(name))
        cache.delete(name)
        return before?.pointer
      }),
    forget(name, id) {
      if (cache.peek(name)?.id === id) cache.delete(name)
    },
  }
}
