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
export function createRing({ maxRecords, maxBytes }: { readonly maxRecords: number; readonly maxBytes: number }): Ring {
  // By id, in order of arrival here.
  const records = new Map<string, { readonly record: RequestRecord; readonly bytes: number }>()
  let bytes = 0
  let dropped = 0

  const dropWhatIsTooMuch = (): void => {
    for (const [id, oldest] of records) {
      if (records.size <= maxRecords && bytes <= maxBytes) return
      records.delete(id)
      bytes -= oldest.bytes
      dropped++
    }
  }
  return {
    push(record) {
      const own = sizeOf(record)
      records.set(record.summary.id, { record, bytes: own })
      bytes += own
      dropWhatIsTooMuch()
    },
    find: (id) => records.get(id)?.record,
    all: () => [...records.values()].map(({ record }) => record),
    clear() {
      records.clear()
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
