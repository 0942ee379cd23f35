import { SourceError } from './source-error.ts'

/** Limits of one registry, over all files or pages. */
export interface Bounds {
  readonly entries: number
  /** Bytes of one file. */
  readonly fileBytes: number
  /** Bytes of all files of a directory. */
  readonly directoryBytes: number
  readonly pages: number
}

/** Default number of entries. */
const USUAL_ENTRIES = 50_000
const MIB = 1024 * 1024

/** The limits of a registry of at most `entries` (default 50,000), in proportion. */
export function boundsFor(entries = USUAL_ENTRIES): Bounds {
  const times = Math.max(1, entries / USUAL_ENTRIES)
  return {
    entries,
    // 10,000 entries of a large registry are about 20 MiB.
    fileBytes: Math.ceil(times * 64) * MIB,
    directoryBytes: Math.ceil(times * 128) * MIB,
    pages: Math.ceil(times * 1000),
  }
}

/** Throws `SourceError` too_large above the limit; `isAll` if `found` is complete. */
export function checkEntries(found: number, { entries }: Bounds, where: string, isAll: boolean): void {
  if (found <= entries) return
  const size = isAll ? `${found}` : `${found} or more`
  throw new SourceError('too_large', `${where}: ${size} entries, the limit is ${entries}; raise source.maxEntries`)
}
