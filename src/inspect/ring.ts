import { type RequestRecord, sizeOf } from './record.ts'

/** The newest records, bounded in number and bytes. */
export interface Ring {
  push(record: RequestRecord): void
  find(id: string): RequestRecord | undefined
  /** Oldest first. */
  all(): readonly RequestRecord[]
  clear(): void
  readonly bytes: number
  /** Records that went to make room since the last clearing. */
  readonly dropped: number
}

/** A ring for at most `maxRecords` records of together about `maxBytes`; the oldest go first. */
export function createRing({
  maxRecords,
  maxBytes,
  onDropped,
}: {
  readonly maxRecords: number
  readonly maxBytes: number
  /** Told of each record that goes to make room. */
  readonly onDropped?: (id: string) => void
}): Ring {
  // Oldest first; those before `first` are gone. Looked through only when somebody asks for one.
  let kept: ({ readonly record: RequestRecord; readonly bytes: number } | undefined)[] = []
  let first = 0
  let bytes = 0
  let dropped = 0

  const dropOldest = (): void => {
    const oldest = kept[first]
    bytes -= oldest?.bytes ?? 0
    if (oldest !== undefined) onDropped?.(oldest.record.summary.id)
    kept[first] = undefined
    first++
    dropped++
    if (first < maxRecords) return
    kept = kept.slice(first)
    first = 0
  }
  const isTooMuch = (): boolean => {
    const count = kept.length - first
    return count > maxRecords || (count > 0 && bytes > maxBytes)
  }
  const all = (): RequestRecord[] => kept.flatMap((one) => (one === undefined ? [] : [one.record]))
  return {
    push(record) {
      const own = sizeOf(record)
      kept.push({ record, bytes: own })
      bytes += own
      while (isTooMuch()) dropOldest()
    },
    find: (id) => all().find(({ summary }) => summary.id === id),
    all,
    clear() {
      kept = []
      first = 0
      bytes = 0
      dropped = 0
    },
    get bytes() {
      return bytes
    },
    get dropped() {
      return dropped
    },
  }
}
