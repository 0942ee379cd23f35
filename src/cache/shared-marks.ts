import { setTimeout as pause } from 'node:timers/promises'
import { type Clock, type EpochMs, Failure } from '../core/index.ts'
import type { SharedRecord, SharedSeal, SharedStore } from './shared-ports.ts'
import { matchesFilter, type Ownership, type PurgeFilter } from './slot.ts'

/** Key of the purge log. */
export const RECORD = 'purges'
/** Maximum time to live of values in the store. */
export const LONGEST_SHARED_MS = 24 * 3_600_000
const KEPT_MS = 2 * LONGEST_SHARED_MS
/** Time before a purge log with an older secret is sealed again: replicas rotate at different times. */
const SEALED_AGAIN_MS = 30_000
/** Time before an unreadable purge log counts as lost: another replica may already know a new secret. */
const UNREADABLE_MS = 5 * 60_000
/** Each failed attempt means that another replica wrote. */
const TRIES = 50
const TRIES_AT_ONCE = 4
const LONGEST_PAUSE_MS = 50
/** The log is rewritten at this interval, so that it does not expire while replicas run. */
const WRITTEN_EACH_MS = LONGEST_SHARED_MS / 4
/** Above this number, entries merge into a purge of everything: credentials are fetched again. */
const MOST_MARKS = 256

interface Mark {
  readonly epoch: number
  readonly filter: PurgeFilter
  /** No purge: the log was missing, so earlier purges are unknown to new replicas. */
  readonly isStart: boolean
  /** False for a start that this replica does not need, since it knows earlier purges. Not stored. */
  readonly isHeeded: boolean
}

/**
 * The purge log, for stored values whose names do not reveal their owner. Each purge has a number; each value has the
 * last number that its creator knew. A value from before a matching purge is not used. Clocks of replicas are never
 * compared. A writer of the store can delete or reset the log: replicas that know more restore it, and one that starts
 * without a log trusts only values created afterwards.
 */
export interface PurgeMarks {
  /** The number for new values. */
  readonly epoch: number
  covers(owner: Ownership, epoch: number): boolean
  /** A value with this number was read; the next `sync` accounts for a number without a known purge. */
  saw(epoch: number): void
  /** Records a local purge; `sync` shares it. */
  add(filter: PurgeFilter): void
  /**
   * Reads purges of others, reports each once to `onPurge`, and writes missing ones, or a log not sealed with the
   * first secret. Throws the errors of the store.
   */
  sync(): Promise<void>
}

export interface PurgeMarksOptions {
  readonly store: Pick<SharedStore, 'get' | 'compareAndSet'>
  readonly seal: SharedSeal
  readonly clock: Clock
  onPurge(filter: PurgeFilter): void
  /** The store had lost the log or had an older one; it was restored. */
  onRestored(): void
}

/** Creates an empty log; call `sync` before using stored values. */
export function createPurgeMarks(options: PurgeMarksOptions): PurgeMarks {
  const { store, seal, clock } = options
  let known: readonly Mark[] = []
  /** Local purges that are not written yet; they get their number on writing. */
  let pending: readonly PurgeFilter[] = []
  let epoch = 0
  let seen = 0
  /** Whether earlier purges are known. */
  let isBorn = false
  let version: string | undefined
  let versionSince = -Infinity
  let unreadable: { readonly version: string; readonly sinceMs: number } | undefined
  let syncing: Promise<void> | undefined
  let isSyncWanted = false

  /**
   * Throws while the log is sealed with an unknown secret, for five minutes. Undefined if missing, damaged, or
   * afterwards.
   */
  const read = async (record: SharedRecord | undefined) => {
    if (record === undefined) return undefined
    try {
      const opened = await seal.open(RECORD, record.value)
      unreadable = undefined
      return opened && { marks: parse(opened.plain), isCurrent: opened.isCurrent }
    } catch (error) {
      const { version: unread } = record
      if (unreadable?.version !== unread) unreadable = { version: unread, sinceMs: clock.now() }
      if (clock.now() - unreadable.sinceMs < UNREADABLE_MS) throw error
      return undefined
    }
  }

  /** Entries to add because earlier purges are unknown. */
  const startsAfter = (stored: readonly Mark[] | undefined): readonly Mark[] => {
    const last = Math.max(epoch, stored?.at(-1)?.epoch ?? 0)
    const start = (number: number) => [{ epoch: number, filter: {}, isStart: true, isHeeded: true }]
    if (!isBorn && stored === undefined) return start(Math.max(seen, clock.now()))
    return seen > last ? start(seen) : []
  }

  const once = async () => {
    for (let tries = 0; tries < TRIES; tries += 1) {
      if (tries >= TRIES_AT_ONCE) await pause(Math.min(LONGEST_PAUSE_MS, tries))
      const record = await store.get(RECORD)
      // Numbers used before the first log was read are invalid.
      if (!isBorn) [known, epoch] = [[], 0]
      const opened = await read(record)
      const stored = opened?.marks
      if (record?.version !== version) {
        version = record?.version
        versionSince = clock.now()
      }
      const before = new Set(known.map((mark) => mark.epoch))
      const heard = (stored ?? []).map((mark) => (mark.isStart && isBorn ? passedOver(mark) : mark))
      const starts = startsAfter(stored)
      for (const mark of [...heard, ...starts]) {
        // Values fetched before the log was read are this replica's own; a start does not affect them.
        const isNews = mark.isHeeded && !before.has(mark.epoch) && (isBorn || !mark.isStart)
        if (isNews) options.onPurge(mark.filter)
      }
      const base = merge([...known, ...heard, ...starts], clock.now())
      const writing = pending
      let next = Math.max(epoch, base.at(-1)?.epoch ?? 0)
      const made = writing.map((filter) => ({ epoch: (next = Math.max(next + 1, clock.now())), filter }))
      const all = merge([...base, ...made.map((mark) => ({ ...mark, isStart: false, isHeeded: true }))], clock.now())
      known = base
      epoch = Math.max(epoch, base.at(-1)?.epoch ?? 0)
      const wasBorn = isBorn
      const inStore = new Set(stored?.map((mark) => mark.epoch))
      const isLost = stored === undefined || base.some((mark) => !inStore.has(mark.epoch))
      const ageMs = clock.now() - versionSince
      const isOld = ageMs >= (opened?.isCurrent === false ? SEALED_AGAIN_MS : WRITTEN_EACH_MS)
      if (!isLost && !isOld && made.length === 0) {
        isBorn = true
        return
      }
      const sealed = seal.seal(RECORD, Buffer.from(JSON.stringify(all, ['epoch', 'filter', 'isStart', ...FIELDS])))
      if (!(await store.compareAndSet(RECORD, record?.version, sealed, KEPT_MS))) continue
      isBorn = true
      known = all
      epoch = Math.max(epoch, all.at(-1)?.epoch ?? 0)
      pending = pending.filter((filter) => !writing.includes(filter))
      if (isLost && wasBorn) options.onRestored()
      return
    }
    throw new Failure('store_unavailable', { detail: 'the purge log changes too often' })
  }

  const run = async () => {
    try {
      do {
        isSyncWanted = false
        await once()
      } while (isSyncWanted)
    } finally {
      // Reset here: a caller in between would wait for a completed promise.
      syncing = undefined
    }
  }

  return {
    get epoch() {
      return epoch
    },
    covers(owner, made) {
      if (pending.some((filter) => matchesFilter(owner, filter))) return true
      return known.some((mark) => mark.isHeeded && mark.epoch > made && matchesFilter(owner, mark.filter))
    },
    saw(number) {
      seen = Math.max(seen, number)
    },
    add(filter) {
      pending = pending.length < MOST_MARKS ? [...pending, filter] : [{}]
    },
    sync() {
      isSyncWanted = true
      return (syncing ??= run())
    },
  }
}

const passedOver = (mark: Mark): Mark => ({ ...mark, isHeeded: false })

const isOfAll = ({ filter }: Mark): boolean => Object.keys(filter).length === 0

/**
 * One entry per number, the wider one; without entries covered by a later purge of everything, and without old ones
 * except the last.
 */
function merge(marks: readonly Mark[], nowMs: EpochMs): readonly Mark[] {
  const byEpoch = new Map<number, Mark>()
  for (const mark of marks) {
    const other = byEpoch.get(mark.epoch)
    byEpoch.set(mark.epoch, other === undefined ? mark : wider(other, mark))
  }
  const sorted = [...byEpoch.values()].toSorted((a, b) => a.epoch - b.epoch)
  const from = sorted.findLastIndex((mark) => isOfAll(mark) && !mark.isStart)
  const recent = sorted.filter((mark, at) => at >= from && (mark.epoch > nowMs - KEPT_MS || at === sorted.length - 1))
  if (recent.length <= MOST_MARKS) return recent
  const dropped = recent.length - MOST_MARKS / 2
  const last = recent[dropped - 1]
  return last === undefined ? recent : [purgeOfAll(last.epoch), ...recent.slice(dropped)]
}

const purgeOfAll = (epoch: number): Mark => ({ epoch, filter: {}, isStart: false, isHeeded: true })

function wider(one: Mark, other: Mark): Mark {
  if (isOfAll(one) && isOfAll(other)) return one.isStart && !other.isStart ? other : one
  return isOfAll(one) || isOfAll(other) ? purgeOfAll(one.epoch) : one
}

const FIELDS = ['subject', 'issuer', 'config', 'role'] as const

function parse(plain: Buffer): readonly Mark[] {
  const list: unknown = JSON.parse(plain.toString())
  if (!Array.isArray(list)) return []
  return list.map((item: { epoch: number; filter: Record<string, string>; isStart?: boolean }) => ({
    epoch: item.epoch,
    filter: Object.fromEntries(FIELDS.flatMap((name) => (name in item.filter ? [[name, item.filter[name]]] : []))),
    isStart: item.isStart === true,
    isHeeded: true,
  }))
}
