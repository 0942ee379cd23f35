import {
  type Bound,
  createMemoryStore,
  type HeldLock,
  type KeptValue,
  type MakerLock,
  type MemoryStoreOptions,
  type Store,
  type StoredValue,
} from '../storage/index.ts'

type Granted = { readonly id: number; readonly fence: number }
type Bytes = Buffer

/** Methods of the memory store for workers: those of `Store`, each with its scope. */
export type StoreMethods = {
  get(scope: string, key: string): Promise<KeptValue | undefined>
  put(scope: string, key: string, value: Bytes, ttlMs: number): Promise<void>
  putIfAbsent(scope: string, key: string, value: Bytes, ttlMs: number): Promise<boolean>
  take(scope: string, key: string): Promise<StoredValue | undefined>
  compareAndSet(
    scope: string,
    key: string,
    version: string | undefined,
    value: Bytes,
    ttlMs: number,
    fence: number | undefined,
  ): Promise<boolean>
  delete(scope: string, keys: readonly string[]): Promise<void>
  admit(
    scope: string,
    collection: string,
    key: string,
    value: Bytes,
    ttlMs: number,
    bound: Bound,
  ): ReturnType<Store['admit']>
  touch(scope: string, collection: string, key: string, ttlMs: number): Promise<void>
  remove(scope: string, collection: string, key: string): Promise<void>
  members(scope: string, collection: string, offset: number, limit: number): Promise<readonly string[]>
  lock(
    scope: string,
    name: string,
    options: { readonly ttlMs: number; readonly waitMs: number },
  ): Promise<Granted | undefined>
  getOrLock(
    scope: string,
    key: string,
    staleVersion: string | undefined,
    ttlMs: number,
  ): Promise<
    | { readonly kind: 'value'; readonly stored: KeptValue }
    | { readonly kind: 'lock'; readonly granted: Granted }
    | { readonly kind: 'busy' }
  >
  finish(scope: string, id: number, value: Bytes, ttlMs: number): Promise<void>
  release(scope: string, id: number): Promise<void>
  publish(scope: string, channel: string, message: string): Promise<number>
  subscribe(scope: string, channel: string, id: number): void
  unsubscribe(id: number): void
}

/** What one worker holds in the memory store. */
export interface WorkersPart {
  readonly methods: StoreMethods
  /** The worker has exited: releases its locks and subscriptions. */
  release(): void
}

/** Shared state of all workers, kept by the supervisor. */
export interface MemoryOfWorkers {
  /** The part of one worker; `onMessage` receives messages of its subscriptions. */
  partOf(onMessage: (id: number, message: string) => void): WorkersPart
}

/** Creates it. A scope has one memory store for the life of the process. */
export function createMemoryOfWorkers(options: MemoryStoreOptions): MemoryOfWorkers {
  const stores = new Map<string, Store>()
  const storeOf = (scope: string): Store => {
    const store = stores.get(scope) ?? createMemoryStore(options)
    stores.set(scope, store)
    return store
  }
  return { partOf: (onMessage) => createPart(storeOf, onMessage) }
}

function createPart(storeOf: (scope: string) => Store, onMessage: (id: number, message: string) => void): WorkersPart {
  const locks = new Map<number, HeldLock & Partial<Pick<MakerLock, 'finish'>>>()
  const subscriptions = new Map<number, { close(): void }>()
  let granted = 0
  let isGone = false

  const grant = (held: HeldLock & Partial<Pick<MakerLock, 'finish'>>): Granted => {
    const id = ++granted
    // The waiting worker may have exited.
    if (isGone) void held.release()
    else locks.set(id, held)
    return { id, fence: held.fence }
  }

  const methods: StoreMethods = {
    get: (scope, key) => storeOf(scope).get(key),
    put: (scope, ...args) => storeOf(scope).put(...args),
    putIfAbsent: (scope, ...args) => storeOf(scope).putIfAbsent(...args),
    take: (scope, key) => storeOf(scope).take(key),
    compareAndSet: (scope, ...args) => storeOf(scope).compareAndSet(...args),
    delete: (scope, keys) => storeOf(scope).delete(...keys),
    admit: (scope, ...args) => storeOf(scope).admit(...args),
    touch: (scope, ...args) => storeOf(scope).touch(...args),
    remove: (scope, ...args) => storeOf(scope).remove(...args),
    members: (scope, ...args) => storeOf(scope).members(...args),
    async lock(scope, ...args) {
      const held = await storeOf(scope).lock(...args)
      return held && grant(held)
    },
    async getOrLock(scope, ...args) {
      const found = await storeOf(scope).getOrLock(...args)
      return found.kind === 'lock' ? { kind: 'lock', granted: grant(found.held) } : found
    },
    async finish(_scope, id, ...args) {
      const held = locks.get(id)
      locks.delete(id)
      await held?.finish?.(...args)
    },
    async release(_scope, id) {
      const held = locks.get(id)
      locks.delete(id)
      await held?.release()
    },
    publish: (scope, ...args) => storeOf(scope).publish(...args),
    subscribe(scope, channel, id) {
      if (isGone) return
      const forward = (message: string): void => onMessage(id, message)
      subscriptions.set(id, storeOf(scope).subscribe(channel, { onMessage: forward, onGap: () => undefined }))
    },
    unsubscribe(id) {
      subscriptions.get(id)?.close()
      subscriptions.delete(id)
    },
  }
  return {
    methods,
    release() {
      isGone = true
      for (const held of locks.values()) void held.release()
      for (const one of subscriptions.values()) one.close()
      locks.clear()
      subscriptions.clear()
    },
  }
}
