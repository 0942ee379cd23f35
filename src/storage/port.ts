import type { ReachedLimit, Secret } from '../core/index.ts'

/** One stored value with the version that compare-and-set goes by. */
export interface StoredValue {
  readonly value: Buffer
  /** Changes with every write; opaque to callers. */
  readonly version: string
}

/** What is found, and for how long the store keeps it. */
export interface KeptValue extends StoredValue {
  /** Milliseconds; by the clock of the store. */
  readonly leftMs: number
}

/** A lock that is held: renewed by its maker while held, lost when the store can't be reached for its whole life. */
export interface HeldLock {
  /** Goes up with every holder of this lock: what is written under it can be told from what an earlier holder writes late. */
  readonly fence: number
  /** False once it was lost: whatever was being done must not be written any more. */
  readonly isHeld: boolean
  /** Lets go; only the owner's own hold is let go. Never rejects. */
  release(): Promise<void>
}

/** The lock of one key, under which its value is made. */
export interface MakerLock extends HeldLock {
  /**
   * Writes the value and lets go, in one step. Written even when the lock was lost meanwhile: what is there then is as good.
   * Throws as `put` does; the lock is let go in any case.
   */
  finish(value: Buffer, ttlMs: number): Promise<void>
}

/** What `getOrLock` came to: the value, the lock under which it is to be made, or neither while somebody else makes it. */
export type ValueOrLock =
  | { readonly kind: 'value'; readonly stored: KeptValue }
  | { readonly kind: 'lock'; readonly held: MakerLock }
  | { readonly kind: 'busy' }

/** How much a collection may hold: members, and bytes of their values together. */
export interface Bound {
  readonly members: number
  readonly bytes: number
}

/** What became of an addition to a bounded collection, and how much is in it now. */
export interface Admission extends Bound {
  readonly outcome: 'added' | 'full'
  /** Members that had to go for it. */
  readonly evicted: number
}

/**
 * Where state lives that outlasts a request (authserver.md §7): memory for one replica, Redis or Valkey through Sentinel for
 * several. Every operation is one atomic step in the store, has a deadline, and throws `StoreError` when the store can't do it.
 * Times are whole milliseconds above zero; every key has a time to live. Keys, channels, collections and names of locks are
 * at most 512 printable ASCII characters without spaces, made by the caller, never secrets; values are at most 1 MiB and arrive
 * sealed where they must not be read in the store (`seal.ts`). What breaks these rules is a `RangeError`.
 */
export interface Store {
  get(key: string): Promise<KeptValue | undefined>
  /** Writes whatever is there, and forgets which fence wrote before. */
  put(key: string, value: Buffer, ttlMs: number): Promise<void>
  /** False when the key is there already. */
  putIfAbsent(key: string, value: Buffer, ttlMs: number): Promise<boolean>
  /** Reads and removes: of many at once exactly one gets it (codes, states, refresh tokens). */
  take(key: string): Promise<StoredValue | undefined>
  /**
   * Writes when the stored version is still `version` (undefined: when there is no such key) and, with a fence, when no later
   * holder of the lock has written. False when it is not.
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
   * A member of a bounded collection, in one step; it is read by `get(key)` like any other. While it does not fit, the member
   * that was never `touch`ed and ends soonest goes (the oldest, where all have one time to live); when all that are left were,
   * `full`. A member that is there already gets the new value and stays touched. A value beyond the bound of bytes: `full`,
   * and nobody goes.
   */
  admit(collection: string, key: string, value: Buffer, ttlMs: number, bound: Bound): Promise<Admission>
  /** Says that a member was used and lives for `ttlMs` from now; nothing happens when it is gone. */
  touch(collection: string, key: string, ttlMs: number): Promise<void>
  /** Deletes a member, so that its place is free at once. */
  remove(collection: string, key: string): Promise<void>
  /**
   * Waits at most `waitMs` (0: not at all) for the lock; undefined when somebody else still has it. It is renewed until
   * released and ends `ttlMs` after its owner died.
   */
  lock(name: string, options: { readonly ttlMs: number; readonly waitMs: number }): Promise<HeldLock | undefined>
  /**
   * For what only one at a time should make: the value, unless there is none or its version is still `staleVersion`; then the
   * lock of the same name, when nobody has it. Doesn't wait.
   */
  getOrLock(key: string, staleVersion: string | undefined, ttlMs: number): Promise<ValueOrLock>
  /**
   * Sends a message to all replicas, this one included, within 2 s, and gives the number of processes that received it. Delivery
   * is at most once: `onGap` says when something may be missed.
   */
  publish(channel: string, message: string): Promise<number>
  subscribe(channel: string, listener: StoreListener): Subscription
  /** Whether the store answers now, for readiness; never rejects. */
  health(): StoreHealth
  close(): Promise<void>
}

export interface Subscription {
  /** Whether messages of the channel are received now; false while the connection or the right to subscribe is missing. */
  readonly isActive: boolean
  close(): void
}

export interface StoreListener {
  onMessage(message: string): void
  /** Messages may have been lost (a connection was): look at the store again. */
  onGap(): void
}

export interface StoreHealth {
  readonly isUp: boolean
  /** `memory` or `kvstore`. */
  readonly kind: 'memory' | 'kvstore'
  /** For people: which part is down; no address, no credential. */
  readonly detail: string | undefined
  /** Where it is: for logs. */
  readonly endpoint?: { readonly host: string; readonly port: number } | undefined
  readonly limit?: ReachedLimit | undefined
}

/**
 * `unavailable`: not connected, or the connection was lost. `timeout`: no answer in time. `overloaded`: too many commands wait,
 * or a bounded store is full. `too_few_replicas`: done, but not yet where it survives the master. `refused`: the store said no
 * (read-only, rights, memory). `unknown_key`: sealed with a secret that isn't configured here.
 */
export type StoreErrorKind = 'unavailable' | 'timeout' | 'overloaded' | 'too_few_replicas' | 'refused' | 'unknown_key'

/** The store did not do it, or nobody knows whether it did. */
export class StoreError extends Error {
  readonly kind: StoreErrorKind
  /** What it is about, where that is known: the first word of an error reply, or `name_not_resolved`. */
  readonly code: string | undefined
  /** Which server was asked, where one was: for logs. */
  readonly endpoint: { readonly host: string; readonly port: number } | undefined
  /** How long was waited, for `timeout`. */
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

/** Secrets that seal and open what is stored: the first seals, all open (authserver.md §5). */
export interface SealingKeys {
  /** The secrets now, at least one. Throws `secret_unavailable` while the first can't be read. */
  current(): readonly Secret[]
  /** Looks at their source at once: somebody else sealed with one that is not known here. */
  refresh(): Promise<void>
  /** True when nothing is configured: made at start, of no use to another process. */
  readonly isEphemeral: boolean
}

const MAX_VALUE_BYTES = 1024 * 1024
const MAX_TTL_MS = 400 * 86_400_000
const NAME = /^[!-~]{1,512}$/

/** Throws `RangeError` for what the port does not take: the same for every maker, so that none is more lenient than the other. */
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
