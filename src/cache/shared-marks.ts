import { setTimeout as pause } from 'node:timers/promises'
import { Failure, type Clock } from '../core/index.ts'
import type { SharedRecord, SharedSeal, SharedStore } from './shared-ports.ts'
import { matchesFilter, type Ownership, type PurgeFilter } from './slot.ts'

/** The key of the record of purges. */
export const RECORD = 'purges'
/** No value is kept in the store for longer. */
export const LONGEST_SHARED_MS = 24 * 3_600_000
const KEPT_MS = 2 * LONGEST_SHARED_MS
/** A record whose secret is not the first is sealed again after so long: replicas rotate at different times. */
const SEALED_AGAIN_MS = 30_000
/** A record that no configured secret opens counts as lost after so long: another replica may know the secret already. */
const UNREADABLE_MS = 5 * 60_000
/** Each try that fails means that another replica wrote. */
const TRIES = 50
const TRIES_AT_ONCE = 4
const LONGEST_PAUSE_MS = 50
/** A record that nobody wrote for so long is written again, so that it doesn't end while there are replicas. */
const WRITTEN_EACH_MS = LONGEST_SHARED_MS / 4
/** More than so many become one that covers everything: too much is fetched again then, never too little. */
const MOST_MARKS = 256

interface Mark {
  readonly epoch: number
  readonly filter: PurgeFilter
  /** No purge: the record was gone, and what was purged before this is known to nobody who starts now. */
  readonly isStart: boolean
  /** False for a start that this replica doesn't need: it knows what was purged before. Not stored. */
  readonly isHeeded: boolean
}

/**
 * What was purged, for values that lie in the store under names that tell nothing of whose they are. Each purge has a number,
 * each value the last number that its maker knew when it began: a value from before a purge that matches it is not used. No
 * clock of one replica is compared with another's. Who writes the store can remove the record or put an older one back: every
 * replica that knows more writes it again, and one that starts without a record trusts only what is made from then on.
 */
export interface PurgeMarks {
  /** The number for what is made from now on. */
  readonly epoch: number
  covers(owner: Ownership, epoch: number): boolean
  /** A value with this number was seen; the next `sync` accounts for a number that nobody knows the purge of any more. */
  saw(epoch: number): void
  /** Takes note of a purge here; `sync` tells the others. */
  add(filter: PurgeFilter): void
  /**
   * Reads what others purged, each reported to `onPurge` once, and writes what they don't know yet, or what is not sealed with
   * the first secret. Throws what the store throws.
   */
  sync(): Promise<void>
}

export interface PurgeMarksOptions {
  readonly store: Pick<SharedStore, 'get' | 'compareAndSet'>
  readonly seal: SharedSeal
  readonly clock: Clock
  onPurge(filter: PurgeFilter): void
  /** The store had lost the record, or an older one was put back; it has what this replica knows again. */
  onRestored(): void
}

/** Makes an empty list; call `sync` before anything is taken from the store. */
export function createPurgeMarks(options: PurgeMarksOptions): PurgeMarks {
  const { store, seal, clock } = options
  let known: readonly Mark[] = []
  /** Made here and not written yet; they get their number when they are. */
  let pending: readonly PurgeFilter[] = []
  let epoch = 0
  let seen = 0
  /** Whether what was purged before is known. */
  let isBorn = false
  let version: string | undefined
  let versionSince = -Infinity
  let unreadable: { readonly version: string; readonly sinceMs: number } | undefined
  let syncing: Promise<void> | undefined
  let isSyncWanted = false

  /**
   * Throws while it is sealed with a secret that is not known here (yet), for five minutes; undefined for none, for what was
   * damaged, and after that.
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

  /** What has to be added because nobody knows any more what was purged. */
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
      // What this replica began before somebody else's record came first counts for nothing.
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
        // What a replica made before it was born it made itself: a start says nothing of that.
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
    throw new Failure('store_unavailable', { detail: 'the record of purges changes too often' })
  }

  const run = async () => {
    try {
      do {
        isSyncWanted = false
        await once()
      } while (isSyncWanted)
    } finally {
      // Here and not a turn later: who asks in between would wait for what has ended.
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

/** One mark per number, the wider one; without those that a purge of everything made needless, and without old ones but the last. */
function merge(marks: readonly Mark[], nowMs: number): readonly Mark[] {
  const byEpoch = new Map<number, Mark>()
  for (const mark of marks) {
    const other = byEpoch.get(mark.epoch)
    byEpoch.set(mark.epoch, other === undefined ? mark : wider(other, mark))
  }
  const sorted = [...byEpoch.values()].toSorted((a, b) => a.epoch - b.epoch)
  const from = sorted.findLastIndex((mark) => isOfAll(mark) && !mark.isStart)
  const recent = sorted.filter((mark, at) => at >= from && (mark.epoch > nowMs - KEPT_MS || at === sorted.length - 1))
  if (recent.length <= MOST_MARKS) return recent
  const cut = recent.length - MOST_MARKS / 2
  const last = recent[cut - 1]
  return last === undefined ? recent : [purgeOfAll(last.epoch), ...recent.slice(cut)]
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
