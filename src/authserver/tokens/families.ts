import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { createTtlLru } from '../../cache/index.ts'
import type { Clock, EpochMs } from '../../core/index.ts'
import { createSealedRecords, type Seal, type Store } from '../../storage/index.ts'

/**
 * Grace period in which the previous token returns the current one again: its response was lost, or two windows
 * refreshed at once.
 */
export const GRACE_MS = 30_000

/** The grant of a refresh token family: one login through one client for one resource. */
export interface FamilyGrant {
  /** Session and family share one id. */
  readonly tsid: string
  readonly clientId: string
  readonly subject: string
  readonly resource: string
  readonly scope: readonly string[]
  /** Scopes requested at the login but not granted. */
  readonly notGranted?: readonly string[]
  readonly authenticatedAtMs: EpochMs
  /** Expiry of the family. */
  readonly endsAtMs: EpochMs
}

interface FamilyRecord extends FamilyGrant {
  /** The valid token. Sealed with the record, because it is returned again within the grace period. */
  readonly current: string
  /** SHA-256 of the previous token. */
  readonly previous: string | undefined
  readonly rotatedAtMs: EpochMs
  readonly expiresAtMs: EpochMs
  /** Number of rotations; absent in records of an earlier version. */
  readonly rotations?: number
}

/** Message: `tsid` and number of rotations. */
const CHANNEL = 'refreshes-rotated'
const MOST_REMEMBERED = 100_000

/**
 * `current`: valid. `previous`: its successor is unused and within the grace period. `stale`: used long ago, so it
 * was copied. `expired`: not used in time.
 */
export interface FoundToken {
  readonly standing: 'current' | 'previous' | 'stale' | 'expired'
  readonly family: FamilyGrant
}

/** Refresh token families (authserver.md §5): opaque tokens, rotated on each use, one family per login. */
export interface Families {
  /** Creates a family and returns its first token. */
  start(grant: FamilyGrant): Promise<string>
  /** Undefined for an unknown token, or one of an ended family. */
  find(token: string): Promise<FoundToken | undefined>
  /**
   * The next token: a new one for the current token, the same as before within the grace period; concurrent callers
   * get the same. Undefined when the family ended meanwhile or the token is invalid.
   */
  next(token: string): Promise<string | undefined>
  end(tsid: string): Promise<void>
}

const TSID_LENGTH = 22
const TOKEN = /^[A-Za-z0-9_-]{108}$/
/** A failed attempt means a concurrent rotation; after one of them the result is the same for all. */
const TRIES = 8

/**
 * A writer of the store can restore an older record, in which a rotated token is current: each replica keeps the
 * number of rotations per family and rejects older records.
 */
export function createFamilies(store: Store, seal: Seal, options: { clock: Clock; lifespanMs: number }): Families {
  const { clock, lifespanMs } = options
  const records = createSealedRecords(seal)
  const keyOf = (tsid: string): string => `family:${tsid}`
  const newest = createTtlLru<number>({ clock, maxEntries: MOST_REMEMBERED })
  const remember = (tsid: string, rotations: number) => {
    const known = Math.max(rotations, newest.peek(tsid) ?? 0)
    newest.set(tsid, known, clock.now() + lifespanMs)
  }
  // The subscription ends with the store.
  store.subscribe(CHANNEL, {
    onMessage(message) {
      const [tsid = '', rotations] = message.split(' ')
      remember(tsid, Number(rotations))
    },
    onGap: () => undefined,
  })
  const isPutBack = ({ tsid, rotations = 0 }: FamilyRecord): boolean => rotations < (newest.peek(tsid) ?? 0)

  const makeToken = (tsid: string): string => {
    const body = tsid + randomBytes(32).toString('base64url')
    return body + seal.lookupKey('refresh', body)
  }

  /** The family id, if this token was made with one of the configured secrets. */
  const tsidOf = (token: string): string | undefined => {
    if (!TOKEN.test(token)) return undefined
    const body = token.slice(0, TSID_LENGTH + 43)
    const tag = Buffer.from(token.slice(TSID_LENGTH + 43))
    const isOurs = seal.lookupKeys('refresh', body).some((key) => timingSafeEqual(Buffer.from(key), tag))
    return isOurs ? token.slice(0, TSID_LENGTH) : undefined
  }

  const read = async (tsid: string): Promise<{ record: FamilyRecord; version: string } | undefined> => {
    const key = keyOf(tsid)
    const stored = await store.get(key)
    const record = await records.read<FamilyRecord>(key, stored)
    return stored === undefined || record === undefined ? undefined : { record, version: stored.version }
  }

  /** Reads again when the record is older than known: a message may have arrived during the read. */
  const load: typeof read = async (tsid) => {
    const found = await read(tsid)
    return found !== undefined && isPutBack(found.record) ? read(tsid) : found
  }

  const standingOf = (token: string, record: FamilyRecord): FoundToken['standing'] => {
    const nowMs = clock.now()
    if (isPutBack(record)) return 'stale'
    if (equal(token, record.current)) return nowMs < record.expiresAtMs ? 'current' : 'expired'
    const isPrevious = record.previous !== undefined && equal(digest(token), record.previous)
    return isPrevious && nowMs <= record.rotatedAtMs + GRACE_MS ? 'previous' : 'stale'
  }

  /** A record with a new current token; its TTL is that of the token, at least the grace period. */
  const withToken = (
    grant: FamilyGrant,
    previous: string | undefined,
    rotations: number,
  ): { record: FamilyRecord; ttlMs: number } => {
    const nowMs = clock.now()
    const expiresAtMs = Math.min(nowMs + lifespanMs, grant.endsAtMs)
    const record = { ...grant, current: makeToken(grant.tsid), previous, rotatedAtMs: nowMs, expiresAtMs, rotations }
    return { record, ttlMs: Math.max(expiresAtMs - nowMs, GRACE_MS) }
  }

  return {
    async start(grant) {
      const { record, ttlMs } = withToken(grant, undefined, 0)
      const key = keyOf(grant.tsid)
      await store.put(key, records.write(key, record), ttlMs)
      return record.current
    },
    async find(token) {
      const tsid = tsidOf(token)
      const loaded = tsid === undefined ? undefined : await load(tsid)
      return loaded && { standing: standingOf(token, loaded.record), family: loaded.record }
    },
    async next(token) {
      const tsid = tsidOf(token)
      if (tsid === undefined) return undefined
      for (let attempt = 0; attempt < TRIES; attempt++) {
        const loaded = await load(tsid)
        if (loaded === undefined) return undefined
        const standing = standingOf(token, loaded.record)
        if (standing === 'previous') return loaded.record.current
        if (standing !== 'current') return undefined
        const rotations = (loaded.record.rotations ?? 0) + 1
        const { record, ttlMs } = withToken(grantOf(loaded.record), digest(token), rotations)
        const key = keyOf(tsid)
        if (!(await store.compareAndSet(key, loaded.version, records.write(key, record), ttlMs))) continue
        remember(tsid, rotations)
        store.publish(CHANNEL, `${tsid} ${rotations}`).catch(() => undefined)
        return record.current
      }
      return undefined
    },
    end: (tsid) => store.delete(keyOf(tsid)),
  }
}

const digest = (token: string): string => createHash('sha256').update(token).digest('base64url')

const equal = (one: string, other: string): boolean =>
  timingSafeEqual(Buffer.from(digest(one)), Buffer.from(digest(other)))

function grantOf(record: FamilyRecord): FamilyGrant {
  const { tsid, clientId, subject, resource, scope, notGranted, authenticatedAtMs, endsAtMs } = record
  const more = notGranted === undefined ? {} : { notGranted }
  return { tsid, clientId, subject, resource, scope, ...more, authenticatedAtMs, endsAtMs }
}
