import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { createTtlLru } from '../../cache/index.ts'
import type { Clock } from '../../core/index.ts'
import { createSealedRecords, type Seal, type Store } from '../../storage/index.ts'

/** For this long the token before the last gives the last again: its answer was lost, or two windows asked at once. */
export const GRACE_MS = 30_000

/** What a refresh family is for: one login through one client for one resource. */
export interface FamilyGrant {
  /** Session and family have one name. */
  readonly tsid: string
  readonly clientId: string
  readonly subject: string
  readonly resource: string
  readonly scope: readonly string[]
  /** Requested at the login besides. */
  readonly notGranted?: readonly string[]
  readonly authenticatedAtMs: number
  /** Nothing of the family outlives this; milliseconds since the epoch. */
  readonly endsAtMs: number
}

interface FamilyRecord extends FamilyGrant {
  /** The token that may be used. Sealed with the record: within the grace it is given out again. */
  readonly current: string
  /** SHA-256 of the token before. */
  readonly previous: string | undefined
  readonly rotatedAtMs: number
  readonly expiresAtMs: number
  /** How often it was rotated; records of an earlier version have none. */
  readonly rotations?: number
}

/** `tsid` and number of rotations, to all replicas. */
const CHANNEL = 'refreshes-rotated'
const MOST_REMEMBERED = 100_000

/**
 * `current`: may be used. `previous`: its successor is unused and was made within the grace. `stale`: one of ours that was used
 * long ago, so that somebody has a copy. `expired`: nobody used it in time.
 */
export interface FoundToken {
  readonly standing: 'current' | 'previous' | 'stale' | 'expired'
  readonly family: FamilyGrant
}

/** Refresh tokens (authserver.md §5): opaque, rotated at each use, one family per login. */
export interface Families {
  /** The first token of a family. */
  start(grant: FamilyGrant): Promise<string>
  /** Undefined for what is no token of ours, or of a family that has ended. */
  find(token: string): Promise<FoundToken | undefined>
  /**
   * The token that follows: a new one for the current, the same as before within the grace; of many at once all get the same.
   * Undefined when the family has ended meanwhile or the token must not be used.
   */
  next(token: string): Promise<string | undefined>
  end(tsid: string): Promise<void>
}

const TSID_LENGTH = 22
const TOKEN = /^[A-Za-z0-9_-]{108}$/
/** Every try that fails means that somebody else rotated in between: after one of them the answer is the same for all. */
const TRIES = 8

/**
 * Who writes the store can put an older record back, in which a token that was rotated is the current one: each replica remembers
 * how often a family was rotated, here or, by message, elsewhere, and takes no record from before that.
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
  // It ends with the store.
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

  /** The name of the family when one of our secrets has made this token. */
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

  /** Read again where it is older than what is known: the message may have come while it was read. */
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

  /** A record with a new current token; its time to live is the token's, but as long as the grace in any case. */
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
