import type { StoredValue } from './port.ts'
import type { Seal } from './seal.ts'

/** JSON values that lie sealed under their key. */
export interface SealedRecords {
  write(key: string, record: unknown): Buffer
  /** The record of this key; undefined when there is none or it is not one that was sealed for this key. */
  read<T>(key: string, stored: StoredValue | undefined): Promise<T | undefined>
  /** The same, and whether it is sealed with the first secret: seal it again otherwise. */
  open<T>(key: string, stored: StoredValue | undefined): Promise<OpenedRecord<T> | undefined>
}

export interface OpenedRecord<T> {
  readonly record: T
  readonly isCurrent: boolean
}

/** Throws what the seal throws: `StoreError` `unknown_key`, `secret_unavailable`. */
export function createSealedRecords(seal: Seal): SealedRecords {
  const open = async <T>(key: string, stored: StoredValue | undefined): Promise<OpenedRecord<T> | undefined> => {
    const opened = stored === undefined ? undefined : await seal.open(key, stored.value)
    // Only what this product sealed opens, so that it has the shape that was written.
    return opened && { record: JSON.parse(opened.plain.toString('utf8')) as T, isCurrent: opened.isCurrent }
  }
  return {
    open,
    write: (key, record) => seal.seal(key, Buffer.from(JSON.stringify(record))),
    async read<T>(key: string, stored: StoredValue | undefined) {
      return (await open<T>(key, stored))?.record
    },
  }
}
