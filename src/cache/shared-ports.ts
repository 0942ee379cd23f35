import type { EpochMs, MonotonicMs } from '../core/index.ts'
import type { CacheSlot, PurgeFilter } from './slot.ts'

/** The store shared by replicas, as the cache needs it; operations may be slow or fail. */
export interface SharedStore {
  get(key: string): Promise<SharedRecord | undefined>
  put(key: string, value: Buffer, ttlMs: number): Promise<void>
  putIfAbsent(key: string, value: Buffer, ttlMs: number): Promise<boolean>
  compareAndSet(key: string, version: string | undefined, value: Buffer, ttlMs: number): Promise<boolean>
  /** Returns the record unless it has the stale version, else the lock to create it, else `busy`. */
  getOrLock(key: string, staleVersion: string | undefined, ttlMs: number): Promise<RecordOrLock>
  /** Returns the number of receiving processes, including this one. */
  publish(channel: string, message: string): Promise<number>
  subscribe(
    channel: string,
    listener: { onMessage(message: string): void; onGap(): void },
  ): {
    /** Whether messages are received. */
    readonly isActive: boolean
    close(): void
  }
  /** Whether there is a connection. */
  health(): { readonly isUp: boolean }
}

/** Problem of a store: text for the log, cause for metrics. */
export interface SharedTrouble {
  /** One of a fixed set. */
  readonly cause: string
  /** For logs. */
  readonly problem: string
  readonly host?: string
  readonly port?: number
}

export interface SharedRecord {
  readonly value: Buffer
  readonly version: string
  /** Remaining time to live. */
  readonly leftMs: number
}

/** The lock to create a record: `finish` writes it and releases the lock in one step. */
export interface SharedLock {
  finish(value: Buffer, ttlMs: number): Promise<void>
  release(): Promise<void>
}

export type RecordOrLock =
  | { readonly kind: 'value'; readonly stored: SharedRecord }
  | { readonly kind: 'lock'; readonly held: SharedLock }
  | { readonly kind: 'busy' }

/** Encrypts values against readers of the store. A value sealed under a different name opens as undefined. */
export interface SharedSeal {
  seal(name: string, plain: Buffer): Buffer
  /** `isCurrent` is false if its secret is no longer the first: seal again. */
  open(name: string, sealed: Buffer): Promise<{ readonly plain: Buffer; readonly isCurrent: boolean } | undefined>
}

/** Serializes a value; undefined for unreadable data. */
export interface SharedCodec<V> {
  encode(value: V): object
  decode(written: unknown): V | undefined
}

/** A value with its times. */
export interface FetchedValue<V> {
  readonly value: V
  readonly expiresAtMs: EpochMs
  /** When it was fetched; default: now. */
  readonly obtainedAtMs?: EpochMs
  /** Fetched by another replica. */
  readonly isShared?: boolean
}

/** Cooperation of the caches of replicas. */
export interface SharedCredentials<V> {
  /**
   * Returns a value other than `current`: from another replica, else fetched here while others wait. Throws the errors
   * of `slot.fetch`, none of the store. Stops waiting for another replica before `endsAtMs`,
   * which leaves time for an own call.
   */
  fetch(slot: CacheSlot<V>, current: V | undefined, endsAtMs: MonotonicMs): Promise<FetchedValue<V>>
  /** The backend rejected this value: it is not read from the store again. */
  reject(slot: Pick<CacheSlot<V>, 'key'>, value: V): void
  /**
   * Purges matching entries in all replicas. Returns the number of processes that received the message, including this
   * one; others read it in the store within a second. Undefined after 2 s at the latest if the store is unreachable:
   * they are notified later. Never rejects.
   */
  purge(filter: PurgeFilter): Promise<number | undefined>
  /** All replicas read the secrets of a config (`<namespace>/<name>`) again; see `purge`. Never rejects. */
  announceRotation(config: string): Promise<number | undefined>
  /** Why this replica uses only its local cache, as text; undefined while credentials are shared. */
  readonly problem: string | undefined
  close(): void
}
