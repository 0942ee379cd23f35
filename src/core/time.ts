declare const clock: unique symbol

/**
 * A time of the system clock in milliseconds since the epoch: expiries and dates, which other systems read too. A
 * plain number is accepted, because tokens, headers and records hold numbers; a `MonotonicMs` is not.
 */
export type EpochMs = number & { readonly [clock]?: 'epoch' }

/**
 * A time of this process's monotonic clock in milliseconds: deadlines, which must not follow changes of the system
 * clock. Only `monotonic` and `after` make one. Durations are plain numbers.
 */
export type MonotonicMs = number & { readonly [clock]: 'monotonic' }

/** Always passed in, so that tests control time. */
export interface Clock<T extends number = EpochMs> {
  now(): T
}

export type MonotonicClock = Clock<MonotonicMs>

export const monotonic = (ms: number): MonotonicMs => ms as MonotonicMs

export const monotonicNow = (): MonotonicMs => monotonic(performance.now())

/** The time `ms` after `at`. */
export const after = (at: MonotonicMs, ms: number): MonotonicMs => monotonic(at + ms)

export const SYSTEM_CLOCK: Clock = { now: () => Date.now() }

export const MONOTONIC_CLOCK: MonotonicClock = { now: monotonicNow }
