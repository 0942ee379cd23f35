import type { Clock } from '../../core/index.ts'
import type { Seal, Store } from '../../storage/index.ts'
import { storeFailure } from '../store-failure.ts'
import { readRecord, writeRecord, type SessionRecord } from './record.ts'

/** A record with what compare-and-set goes by. */
export interface LoadedSession {
  readonly record: SessionRecord
  readonly version: string
}

/** The sessions in the store, sealed. Every method throws `store_unavailable`. */
export interface SessionRecords {
  load(tsid: string): Promise<LoadedSession | undefined>
  /** False when there is one already. */
  add(tsid: string, record: SessionRecord): Promise<boolean>
  /** Puts `record` in the place of what was loaded; false when that is not there any more. */
  replace(tsid: string, version: string, record: SessionRecord, fence?: number): Promise<boolean>
  remove(tsid: string): Promise<void>
}

/** The name of a session in the store; `tsid` is no secret: it stands in tokens, which only our key signs. */
export const sessionKey = (tsid: string): string => `session:${tsid}`

export function createSessionRecords(store: Store, seal: Seal, clock: Clock): SessionRecords {
  const guarded = async <T>(run: () => Promise<T>): Promise<T> => {
    try {
      return await run()
    } catch (error) {
      throw storeFailure(error)
    }
  }
  const sealed = (key: string, record: SessionRecord) => seal.seal(key, writeRecord(record))
  const lifeOf = ({ endsAtMs }: SessionRecord) => Math.max(1, Math.ceil(endsAtMs - clock.now()))

  const read = async (tsid: string, mayReseal: boolean): Promise<LoadedSession | undefined> => {
    const key = sessionKey(tsid)
    const stored = await store.get(key)
    const opened = stored === undefined ? undefined : await seal.open(key, stored.value)
    const record = opened === undefined ? undefined : readRecord(opened.plain)
    if (stored === undefined || record === undefined || record.endsAtMs <= clock.now()) return undefined
    if (opened?.isCurrent !== false || !mayReseal) return { record, version: stored.version }
    // Sealed with a secret that is on its way out (authserver.md §5). What is there after may be somebody else's writing.
    await store.compareAndSet(key, stored.version, sealed(key, record), lifeOf(record))
    return read(tsid, false)
  }

  return {
    load: (tsid) => guarded(() => read(tsid, true)),
    add: (tsid, record) =>
      guarded(async () => {
        const key = sessionKey(tsid)
        return store.putIfAbsent(key, sealed(key, record), lifeOf(record))
      }),
    replace: (tsid, version, record, fence) =>
      guarded(async () => {
        const key = sessionKey(tsid)
        return store.compareAndSet(key, version, sealed(key, record), lifeOf(record), fence)
      }),
    remove: (tsid) => guarded(() => store.delete(sessionKey(tsid))),
  }
}
