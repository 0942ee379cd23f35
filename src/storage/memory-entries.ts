import type { Clock, EpochMs } from '../core/index.ts'
import { StoreError } from './port.ts'

/** Overhead of an entry besides key and value: two strings, some numbers and a map slot. */
const ENTRY_BYTES = 200
/** Old entries checked per write, so that expired ones are removed without a read. */
const SWEPT_PER_WRITE = 4
/** Minimum interval of full sweeps before a full store rejects writes. */
const FULL_SWEEP_PAUSE_MS = 1_000

export interface MemoryEntry {
  /** Latin-1: one byte of memory per byte, and immutable. */
  readonly bytes: string
  readonly version: number
  readonly fence: number
  endMs: EpochMs
}

export interface MemoryEntries {
  readonly count: number
  readonly bytes: number
  /** True while less than a sixty-fourth is free: large values are already rejected. */
  readonly isFull: boolean
  get(key: string): MemoryEntry | undefined
  /** Throws `StoreError` `overloaded` if the store is full. */
  set(key: string, value: Buffer, ttlMs: number, fence: number): void
  delete(key: string): void
  all(): Iterable<readonly [key: string, entry: MemoryEntry]>
  /** Adds an entry of `all`; later writes get higher versions. */
  restore(key: string, entry: MemoryEntry): void
}

/** Creates entries with a time to live, limited in bytes. A full store rejects writes: no live entry may be lost. */
export function createMemoryEntries(clock: Clock, maxBytes: number): MemoryEntries {
  const kept = new Map<string, MemoryEntry>()
  let bytes = 0
  let writes = 0
  let fullSweepAtMs = -Infinity
  let sweeping = kept.entries()

  const sizeOf = (key: string, length: number) => key.length + length + ENTRY_BYTES

  const remove = (key: string, entry: MemoryEntry) => {
    kept.delete(key)
    bytes -= sizeOf(key, entry.bytes.length)
  }

  const sweep = (most: number) => {
    const now = clock.now()
    for (let looked = 0; looked < most; looked += 1) {
      const next = sweeping.next()
      if (next.done === true) {
        sweeping = kept.entries()
        return
      }
      const [key, entry] = next.value
      if (entry.endMs <= now) remove(key, entry)
    }
  }

  const sweepAll = () => {
    const now = clock.now()
    if (now < fullSweepAtMs) return
    fullSweepAtMs = now + FULL_SWEEP_PAUSE_MS
    for (const [key, entry] of kept) if (entry.endMs <= now) remove(key, entry)
  }

  const get = (key: string): MemoryEntry | undefined => {
    const entry = kept.get(key)
    if (entry === undefined || clock.now() < entry.endMs) return entry
    remove(key, entry)
    return undefined
  }

  return {
    get count() {
      return kept.size
    },
    get bytes() {
      return bytes
    },
    get isFull() {
      const mostBytes = maxBytes - maxBytes / 64
      if (bytes > mostBytes) sweepAll()
      return bytes > mostBytes
    },
    get,
    set(key, value, ttlMs, fence) {
      sweep(SWEPT_PER_WRITE)
      const old = get(key)
      const oldSize = old === undefined ? 0 : sizeOf(key, old.bytes.length)
      const size = sizeOf(key, value.length)
      if (bytes - oldSize + size > maxBytes) sweepAll()
      if (bytes - oldSize + size > maxBytes) throw new StoreError('overloaded')
      if (old !== undefined) remove(key, old)
      writes += 1
      kept.set(key, { bytes: value.toString('latin1'), version: writes, fence, endMs: clock.now() + ttlMs })
      bytes += size
    },
    delete(key) {
      const entry = kept.get(key)
      if (entry !== undefined) remove(key, entry)
    },
    all: () => kept,
    restore(key, entry) {
      writes = Math.max(writes, entry.version)
      kept.set(key, entry)
      bytes += sizeOf(key, entry.bytes.length)
    },
  }
}
