import type { CacheSlot, PurgeFilter } from './slot.ts'

/** What the cache needs of a store that replicas have in common; its operations may take long or fail. */
export interface SharedStore {
  get(key: string): Promise<SharedRecord | undefined>
  put(key: string, value: Buffer, ttlMs: number): Promise<void>
  putIfAbsent(key: string, value: Buffer, ttlMs: number): Promise<boolean>
  compareAndSet(key: string, version: string | undefined, value: Buffer, ttlMs: number): Promise<boolean>
  /** The record unless its version is the stale one, else the right to make it, else `busy`. */
  getOrLock(key: string, staleVersion: string | undefined, ttlMs: number): Promise<RecordOrLock>
  /** Gives the number of processes that received it, this one included. */
  publish(channel: string, message: string): Promise<number>
  subscribe(
    channel: string,
    listener: { onMessage(message: string): void; onGap(): void },
  ): {
    /** Whether messages are received now. */
    readonly isActive: boolean
    close(): void
  }
  /** Whether there is a connection. */
  health(): { readonly isUp: boolean }
}

/** What is wrong with a store: for the log, and by its cause for a metric. */
export interface SharedTrouble {
  /** One of a few words. */
  readonly cause: string
  /** For people. */
  readonly problem: string
  readonly host?: string
  readonly port?: number
}

export interface SharedRecord {
  readonly value: Buffer
  readonly version: string
  /** For so long the store keeps it. */
  readonly leftMs: number
}

/** The right to make a record: `finish` writes it and gives the right back in one step. */
export interface SharedLock {
  finish(value: Buffer, ttlMs: number): Promise<void>
  release(): Promise<void>
}

export type RecordOrLock =
  | { readonly kind: 'value'; readonly stored: SharedRecord }
  | { readonly kind: 'lock'; readonly held: SharedLock }
  | { readonly kind: 'busy' }

/** Makes values useless to who reads the store; what is opened under another name than it was sealed under is undefined. */
export interface SharedSeal {
  seal(name: string, plain: Buffer): Buffer
  /** `isCurrent` is false for what has to be sealed again: its secret is not the first any more. */
  open(name: string, sealed: Buffer): Promise<{ readonly plain: Buffer; readonly isCurrent: boolean } | undefined>
}

/** How a value is written down, and read back; what can't be read is undefined. */
export interface SharedCodec<V> {
  encode(value: V): object
  decode(written: unknown): V | undefined
}

/** A value with its times, in milliseconds since the epoch. */
export interface FetchedValue<V> {
  readonly value: V
  readonly expiresAtMs: number
  /** When it was made; absent: now. */
  readonly obtainedAtMs?: number
  /** Somebody else made it. */
  readonly isShared?: boolean
}

/** What a cache does together with those of other replicas. */
export interface SharedCredentials<V> {
  /**
   * A value that is not `current`: one that another replica made, else one that is fetched here while the others wait for it.
   * Throws what `slot.fetch` throws, and nothing because of the store. Waiting for another replica ends
   * before `endsAtMs` (`performance.now()`), so that time is left for a call of its own.
   */
  fetch(slot: CacheSlot<V>, current: V | undefined, endsAtMs: number): Promise<FetchedValue<V>>
  /** The backend refused this one: it is not taken from the store again. */
  reject(slot: Pick<CacheSlot<V>, 'key'>, value: V): void
  /**
   * All replicas forget what matches. Gives the number of processes that received the message, this one included; the others
   * read it in the store within a second. Undefined, after 2 s at the latest, when the store can't be reached now: then they
   * learn it as soon as it can. Never rejects.
   */
  purge(filter: PurgeFilter): Promise<number | undefined>
  /** All replicas look at the secrets of a config (`<namespace>/<name>`) again; as above. Never rejects. */
  announceRotation(config: string): Promise<number | undefined>
  /** Why this replica works with its own cache alone, for people; undefined while credentials are shared. */
  readonly problem: string | undefined
  close(): void
}
