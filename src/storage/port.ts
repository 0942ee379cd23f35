import type { ReachedLimit, Secret } from '../core/index.ts'

/** A stored value with its version for compare-and-set. */
export interface StoredValue {
  readonly value: Buffer
  /** Changes with every write; opaque. */
  readonly version: string
}

/** A stored value with its remaining time to live. */
export interface KeptValue extends StoredValue {
  /** Milliseconds, by the clock of the store. */
  readonly leftMs: number
}

/** A held lock. It is renewed while held, and lost if the store is unreachable for its whole lifetime. */
export interface HeldLock {
  /** Increases with every holder, to detect late writes of earlier holders. */
  readonly fence: number
  /** False after it was lost: results must not be written. */
  readonly isHeld: boolean
  /** Releases the lock, only if still owned. Never rejects. */
  release(): Promise<void>
}

/** The lock of a key while its value is created. */
export interface MakerLock extends HeldLock {
  /**
   * Writes the value and releases the lock in one step, even if the lock was lost: any other value is equally valid.
   * Throws like `put`, after releasing the lock.
   */
  finish(value: Buffer, ttlMs: number): Promise<void>
}

/** Result of `getOrLock`: the value, the lock to create it, or `busy` while another holder creates it. */
export type ValueOrLock =
  | { readonly kind: 'value'; readonly stored: KeptValue }
  | { readonly kind: 'lock'; readonly held: MakerLock }
  | { readonly kind: 'busy' }

/** Size of a collection: members, and total bytes of their values. */
export interface CollectionSize {
  readonly members: number
  readonly bytes: number
}

/** Limits of a collection. */
export interface Bound extends CollectionSize {
  /** Default true. False: a full collection rejects new members instead. */
  readonly evicts?: boolean
}

/** Result of an addition to a bounded collection, with its new size. */
export interface Admission extends CollectionSize {
  readonly outcome: 'added' | 'full'
  /** Evicted members. */
  readonly evicted: number
}

/**
 * State that outlasts a request (authserver.md §7): memory or a file for one replica, Redis or Valkey for several. Every
 * operation is atomic, has a deadline, and throws `StoreError` on failure. Times are positive integers in
 * milliseconds; every key has a time to live. Keys, channels, collections and lock names are at most 512 printable
 * ASCII characters without spaces, never secrets. Values are at most 1 MiB, sealed if confidential (`seal.ts`).
 * Violations throw `RangeError`.
 */
export interface Store {
  get(key: string): Promise<KeptValue | undefined>
  /** Writes unconditionally, and clears the fence of the last write. */
  put(key: string, value: Buffer, ttlMs: number): Promise<void>
  /** False if the key exists. */
  putIfAbsent(key: string, value: Buffer, ttlMs: number): Promise<boolean>
  /** Reads and deletes: exactly one of several concurrent callers gets the value (codes, states, refresh tokens). */
  take(key: string): Promise<StoredValue | undefined>
  /**
   * Writes if the stored version is still `version` (undefined: no such key) and, with a fence, no later holder of the
   * lock has written. Else returns false.
   */
  compareAndSet(
    key: string,
    version: string | undefined,
    value: Buffer,
    ttlMs: number,
    fence?: number,
  ): Promise<boolean>
  delete(...keys: readonly string[]): Promise<void>
  /**
   * Adds a member to a bounded collection, atomically; `get(key)` reads it. To make space, evicts the unused member
   * (never `touch`ed) that expires first, unless the bound says otherwise. `full` if all others were used, or if the
   * value exceeds the limit. An existing member gets the new value and remains used.
   */
  admit(collection: string, key: string, value: Buffer, ttlMs: number, bound: Bound): Promise<Admission>
  /** Marks a member as used, with a new time to live; does nothing if it is gone. */
  touch(collection: string, key: string, ttlMs: number): Promise<void>
  /** Deletes a member and frees its place. */
  remove(collection: string, key: string): Promise<void>
  /** Keys of up to `limit` live members after `offset` others. Positions shift when members change. */
  members(collection: string, offset: number, limit: number): Promise<readonly string[]>
  /**
   * Waits up to `waitMs` (0: not at all) for the lock; undefined if another holder keeps it. Renewed until released;
   * expires `ttlMs` after its owner died.
   */
  lock(name: string, options: { readonly ttlMs: number; readonly waitMs: number }): Promise<HeldLock | undefined>
  /**
   * For values created by one holder at a time. Returns the value, unless it is missing or still has `staleVersion`;
   * then the lock of that name if it is free. Does not wait.
   */
  getOrLock(key: string, staleVersion: string | undefined, ttlMs: number): Promise<ValueOrLock>
  /**
   * Publishes to all replicas, including this one, within 2 s. Returns the number of receiving processes. Delivers at
   * most once: `onGap` reports possible losses.
   */
  publish(channel: string, message: string): Promise<number>
  subscribe(channel: string, listener: StoreListener): Subscription
  /** Whether the store responds, for readiness; never rejects. */
  health(): StoreHealth
  close(): Promise<void>
}

export interface Subscription {
  /** Whether messages of the channel are received; false without connection or permission. */
  readonly isActive: boolean
  close(): void
}

export interface StoreListener {
  onMessage(message: string): void
  /** Messages may have been lost with a connection: read the store again. */
  onGap(): void
}

export interface StoreHealth {
  readonly isUp: boolean
  readonly kind: 'memory' | 'file' | 'kvstore'
  /** The failing part, without address and credentials. */
  readonly detail: string | undefined
  /** Address, for logs. */
  readonly endpoint?: { readonly host: string; readonly port: number } | undefined
  readonly limit?: ReachedLimit | undefined
}

/**
 * `unavailable`: not connected, or connection lost. `timeout`: no response in time. `overloaded`: too many commands
 * queued, or a bounded store is full. `too_few_replicas`: written, but not durable. `refused`: rejected (read-only,
 * permissions, memory). `unknown_key`: sealed with a secret that is not configured.
 */
export type StoreErrorKind = 'unavailable' | 'timeout' | 'overloaded' | 'too_few_replicas' | 'refused' | 'unknown_key'

/** The operation failed, or its result is unknown. */
export class StoreError extends Error {
  readonly kind: StoreErrorKind
  /** First word of an error reply, or `name_not_resolved`; undefined if unknown. */
  readonly code: string | undefined
  /** The server, if any, for logs. */
  readonly endpoint: { readonly host: string; readonly port: number } | undefined
  /** The time waited, for `timeout`. */
  readonly limit: ReachedLimit | undefined

  constructor(kind: StoreErrorKind, options: StoreErrorOptions = {}) {
    super(`store ${kind}`, { cause: options.cause })
    this.name = 'StoreError'
    this.kind = kind
    this.code = options.code
    this.endpoint = options.endpoint
    this.limit = options.limit
  }
}

export interface StoreErrorOptions {
  readonly cause?: unknown
  readonly code?: string | undefined
  readonly endpoint?: { readonly host: string; readonly port: number } | undefined
  readonly limit?: ReachedLimit | undefined
}

/** Secrets for stored data: the first seals, all open (authserver.md §5). */
export interface SealingKeys {
  /** The current secrets, at least one. Throws `secret_unavailable` while the first is unreadable. */
  current(): readonly Secret[]
  /** Reads the secrets again: another replica sealed with one that is unknown here. */
  refresh(): Promise<void>
  /** True without configured secrets: generated at start, unknown to other processes. */
  readonly isEphemeral: boolean
}

const MAX_VALUE_BYTES = 1024 * 1024
const MAX_TTL_MS = 400 * 86_400_000
const NAME = /^[!-~]{1,512}$/

/** Throws `RangeError` for invalid arguments, equally in all stores. */
export const check = {
  name(name: string): void {
    if (!NAME.test(name))
      throw new RangeError('a name in the store is 1 to 512 printable ASCII characters without spaces')
  },
  value(value: Buffer): void {
    if (value.length > MAX_VALUE_BYTES) throw new RangeError(`a stored value has at most ${MAX_VALUE_BYTES} bytes`)
  },
  ttl(ttlMs: number): void {
    if (!Number.isSafeInteger(ttlMs) || ttlMs < 1 || ttlMs > MAX_TTL_MS) {
      throw new RangeError('a time to live is a whole number of milliseconds, 1 to 400 days')
    }
  },
}
