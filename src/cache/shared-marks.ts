import type { Clock } from '../core/index.ts'
import type { SharedSeal, SharedStore } from './shared-ports.ts'
import { matchesFilter, type Ownership, type PurgeFilter } from './slot.ts'

const RECORD = 'purges'
/** No value is kept in the store for longer. */
export const LONGEST_SHARED_MS = 24 * 3_600_000
const KEPT_MS = 2 * LONGEST_SHARED_MS
/** More than so many become one that covers everything: too much is fetched again then, never too little. */
const MOST_MARKS = 256

interface Mark {
  readonly epoch: number
  readonly filter: PurgeFilter
}

/**
 * What was purged, for values that lie in the store under names that tell nothing of whose they are. Each purge has a number,
 * each value the last number that its maker knew when it began: a value from before a purge that matches it is not used. No
 * clock of one replica is compared with another's.
 */
export interface PurgeMarks {
  /** The number for what is made from now on. */
  readonly epoch: number
  covers(owner: Ownership, epoch: number): boolean
  /** Takes note of a purge here; `save` tells the others. */
  add(filter: PurgeFilter): void
  /** Reads what others purged, each told to `onPurge` once, and writes what they don't know yet. Throws what the store throws. */
  sync(): Promise<void>
}

export interface PurgeMarksOptions {
  readonly store: Pick<SharedStore, 'get' | 'compareAndSet'>
  readonly seal: SharedSeal
  readonly clock: Clock
  onPurge(filter: PurgeFilter): void
}

/** Makes an empty list; call `sync` before anything is taken from the store. */
export function createPurgeMarks(options: PurgeMarksOptions): PurgeMarks {
  const { store, seal, clock } = options
  let known: readonly Mark[] = []
  /** Made here and not written yet; they get their number when they are. */
  let pending: readonly PurgeFilter[] = []
  let epoch = 0
  let syncing: Promise<void> | undefined
  let isSyncWanted = false

  const merge = (stored: readonly Mark[]): readonly Mark[] => {
    const byEpoch = new Map(known.map((mark) => [mark.epoch, mark]))
    for (const mark of stored) {
      const isWider = Object.keys(mark.filter).length === 0
      if (isWider || !byEpoch.has(mark.epoch)) byEpoch.set(mark.epoch, mark)
    }
    const merged = [...byEpoch.values()].toSorted((a, b) => a.epoch - b.epoch)
    const recent = merged.filter((mark) => mark.epoch > clock.now() - KEPT_MS)
    if (recent.length <= MOST_MARKS) return recent
    const cut = recent.length - MOST_MARKS / 2
    const last = recent[cut - 1]
    return last === undefined ? recent : [{ epoch: last.epoch, filter: {} }, ...recent.slice(cut)]
  }

  /** Throws when it was sealed with a secret that is not known here (yet). What was damaged hid a purge: it counts as one of all. */
  const read = async (sealed: Buffer | undefined): Promise<readonly Mark[]> => {
    if (sealed === undefined) return []
    const opened = await seal.open(RECORD, sealed)
    return opened === undefined ? [{ epoch: clock.now(), filter: {} }] : parse(opened.plain)
  }

  const once = async () => {
    for (;;) {
      const record = await store.get(RECORD)
      const stored = await read(record?.value)
      const before = new Set(known.map((mark) => mark.epoch))
      for (const mark of stored) if (!before.has(mark.epoch)) options.onPurge(mark.filter)
      const writing = pending
      const base = merge(stored)
      let next = Math.max(epoch, base.at(-1)?.epoch ?? 0)
      const added = writing.map((filter) => ({ epoch: (next = Math.max(next + 1, clock.now())), filter }))
      known = base
      epoch = Math.max(epoch, base.at(-1)?.epoch ?? 0)
      const all = merge([...base, ...added])
      const storedEpochs = new Set(stored.map((mark) => mark.epoch))
      if (all.every((mark) => storedEpochs.has(mark.epoch))) return
      const sealed = seal.seal(RECORD, Buffer.from(JSON.stringify(all)))
      if (!(await store.compareAndSet(RECORD, record?.version, sealed, KEPT_MS))) continue
      known = all
      epoch = Math.max(epoch, all.at(-1)?.epoch ?? 0)
      pending = pending.filter((filter) => !writing.includes(filter))
      return
    }
  }

  const run = async () => {
    do {
      isSyncWanted = false
      await once()
    } while (isSyncWanted)
  }

  return {
    get epoch() {
      return epoch
    },
    covers(owner, made) {
      if (pending.some((filter) => matchesFilter(owner, filter))) return true
      return known.some((mark) => mark.epoch > made && matchesFilter(owner, mark.filter))
    },
    add(filter) {
      pending = pending.length < MOST_MARKS ? [...pending, filter] : [{}]
    },
    sync() {
      isSyncWanted = true
      syncing ??= run().finally(() => (syncing = undefined))
      return syncing
    },
  }
}

const FIELDS = ['subject', 'issuer', 'config', 'role'] as const

function parse(plain: Buffer): readonly Mark[] {
  const list: unknown = JSON.parse(plain.toString())
  if (!Array.isArray(list)) return []
  return list.map((item: { epoch: number; filter: Record<string, string> }) => ({
    epoch: item.epoch,
    filter: Object.fromEntries(FIELDS.flatMap((name) => (name in item.filter ? [[name, item.filter[name]]] : []))),
  }))
}
