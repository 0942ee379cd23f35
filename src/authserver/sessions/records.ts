import type { Clock } from '../../core/index.ts'
import type { Seal, Store } from '../../storage/index.ts'
import { storeFailure } from '../store-failure.ts'
import { readRecord, writeRecord, type SessionRecord } from './record.ts'

/** A record and its compare-and-set version. */
export interface LoadedSession {
  readonly record: SessionRecord
  readonly version: string
}

/** The sealed sessions in the store. All methods throw `store_unavailable`. */
export interface SessionRecords {
  load(tsid: string): Promise<LoadedSession | undefined>
  /** False when it already exists. */
  add(tsid: string, record: SessionRecord): Promise<boolean>
  /** Replaces the loaded version; false when it has changed. */
  replace(tsid: string, version: string, record: SessionRecord, fence?: number): Promise<boolean>
  remove(tsid: string): Promise<void>
}

/** The store keeps no key for longer; the record of a longer session is written again in time. */
const LONGEST_MS = 360 * 86_400_000

/** Store key of a session. `tsid` is no secret: tokens contain it, but only this server signs them. */
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
  const lifeOf = ({ endsAtMs }: SessionRecord) => Math.min(LONGEST_MS, Math.max(1, Math.ceil(endsAtMs - clock.now())))

  const read = async (tsid: string, mayReseal: boolean): Promise<LoadedSession | undefined> => {
    const key = sessionKey(tsid)
    const stored = await store.get(key)
    const opened = stored === undefined ? undefined : await seal.open(key, stored.value)
    const record = opened === undefined ? undefined : readRecord(opened.plain)
    if (stored === undefined || record === undefined || record.endsAtMs <= clock.now()) return undefined
    const isDue = opened?.isCurrent === false || lifeOf(record) - stored.leftMs > LONGEST_MS / 2
    if (!isDue || !mayReseal) return { record, version: stored.version }
    // Sealed with a secret that is being rotated out (authserver.md §5), or longer-lived than a key of the store. A
    // later value may be a forgery.
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
