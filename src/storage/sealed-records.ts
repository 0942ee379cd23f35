import type { StoredValue } from './port.ts'
import type { Seal } from './seal.ts'

/** JSON values that lie sealed under their key. */
export interface SealedRecords {
  write(key: string, record: unknown): Buffer
  /** The record of this key; undefined when there is none or it is not one that was sealed for this key. */
  read<T>(key: string, stored: StoredValue | undefined): Promise<T | undefined>
}

/** Throws what the seal throws: `StoreError` `unknown_key`, `secret_unavailable`. */
export function createSealedRecords(seal: Seal): SealedRecords {
  return {
    write: (key, record) => seal.seal(key, Buffer.from(JSON.stringify(record))),
    async read<T>(key: string, stored: StoredValue | undefined) {
      const opened = stored === undefined ? undefined : await seal.open(key, stored.value)
      // Only what we wrote opens, so that it has the shape that we wrote.
      return opened === undefined ? undefined : (JSON.parse(opened.plain.toString('utf8')) as T)
    },
  }
}
