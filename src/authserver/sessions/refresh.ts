import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { asFailure, type Clock, type EpochMs, Failure, type Log, type MonotonicMs } from '../../core/index.ts'
import type { HeldLock, Store } from '../../storage/index.ts'
import { storeFailure } from '../store-failure.ts'
import type { Upstream, UpstreamLogin } from '../../upstreams/index.ts'
import type { RefreshOutcome } from './counters.ts'
import { pickClaims, type HeldTokens, type SessionRecord } from './record.ts'
import { sessionKey, type LoadedSession, type SessionRecords } from './records.ts'

/** A session with new tokens. */
export interface Refreshed {
  readonly record: SessionRecord
  readonly held: HeldTokens
  /** False: the new tokens exist only in this process, and the stored ones can't be refreshed. */
  readonly isStored: boolean
}

export interface RefreshOptions {
  readonly store: Store
  readonly records: SessionRecords
  readonly clock: Clock
  readonly log: Log
  readonly claimNames: ReadonlySet<string>
  readonly count: (provider: string, outcome: RefreshOutcome) => void
}

/** A refresh, and whether the stored record still needs it. */
export interface RefreshRequest {
  readonly tsid: string
  readonly upstream: Upstream
  readonly needs: (held: HeldTokens, record: SessionRecord) => boolean
  /** Deadline for the upstream. */
  readonly endsAtMs: MonotonicMs
}

/** Renewed at each third: survives a failover of the store, but not a dead replica for long. */
const LOCK_MS = 8_000
/** After this wait the caller gets 503, or a token that is still valid. */
const LOCK_WAIT_MS = 2_000
const WRITE_TRIES = 8
const STORE_TRIES = 3
const STORE_PAUSE_MS = 100

/** Converts an upstream login to its stored form. */
export const heldOf = ({ tokens, subject }: Pick<UpstreamLogin, 'tokens' | 'subject'>, nowMs: EpochMs): HeldTokens => ({
  ...tokens,
  user: subject,
  generation: randomBytes(8).toString('base64url'),
  obtainedAtMs: nowMs,
})

/** Replaces a provider's tokens in a record; keeps a name or e-mail that the new claims lack (from user info). */
export function withLogin(
  record: SessionRecord,
  provider: string,
  held: HeldTokens,
  claims: UpstreamLogin['claims'],
  names: ReadonlySet<string>,
): SessionRecord {
  const providers = new Map(record.providers).set(provider, held)
  if (provider !== record.firstProvider || Object.keys(claims).length === 0) return { ...record, providers }
  const lasting = pickClaims(record.claims, new Set(['name', 'email', 'email_verified']))
  const isOtherEmail = claims['email'] !== undefined
  const before = isOtherEmail ? pickClaims(lasting, new Set(['name'])) : lasting
  const merged = Object.freeze(Object.assign(Object.create(null), before, pickClaims(claims, names)) as typeof claims)
  return { ...record, providers, claims: merged }
}

/**
 * Refreshes a provider's tokens of a session under a lock across replicas (authserver.md §6); a replica that waited
 * takes the stored result. The new pair is stored before use. Undefined when the session does not exist (any more).
 * Throws the errors of `Upstream.refresh`, and `store_unavailable` if nothing was sent.
 */
export function createRefresh(options: RefreshOptions): (request: RefreshRequest) => Promise<Refreshed | undefined> {
  const { store, records, clock, log, claimNames, count } = options

  const lock = async (tsid: string): Promise<HeldLock> => {
    const held = await store
      .lock(`refresh:${sessionKey(tsid)}`, { ttlMs: LOCK_MS, waitMs: LOCK_WAIT_MS })
      .catch((error: unknown) => {
        throw storeFailure(error)
      })
    if (held !== undefined) return held
    throw new Failure('identity_provider_unavailable', {
      detail: 'another refresh takes too long',
      retryAfterSeconds: 1,
    })
  }

  /** Stores it on the current version; undefined when the session ended meanwhile. Throws `store_unavailable`. */
  const storeOnce = async (
    { tsid, upstream }: RefreshRequest,
    from: HeldTokens,
    held: HeldTokens,
    login: UpstreamLogin,
    fence: number,
  ): Promise<SessionRecord | undefined> => {
    for (let tries = 0; tries < WRITE_TRIES; tries++) {
      const loaded = await records.load(tsid)
      const there = loaded?.record.providers.get(upstream.name)
      if (loaded === undefined || there === undefined) return undefined
      // Stored by an attempt whose response was lost, or by another replica after the lock expired.
      if (there.generation !== from.generation) return loaded.record
      const record = withLogin(loaded.record, upstream.name, held, login.claims, claimNames)
      if (await records.replace(tsid, loaded.version, record, fence)) return record
    }
    throw new Failure('store_unavailable', { detail: 'the session changes too often', retryAfterSeconds: 1 })
  }

  /** Tries three times; after that only this process has the new pair. */
  const keep = async (
    request: RefreshRequest,
    before: LoadedSession,
    from: HeldTokens,
    login: UpstreamLogin,
    fence: number,
  ): Promise<Refreshed | undefined> => {
    const { name } = request.upstream
    const held = heldOf(login, clock.now())
    for (let tries = 1; ; tries++) {
      try {
        const record = await storeOnce(request, from, held, login, fence)
        const stored = record?.providers.get(name)
        return record === undefined || stored === undefined ? undefined : { record, held: stored, isStored: true }
      } catch (error) {
        if (tries === STORE_TRIES) {
          const { code, detail } = asFailure(error)
          log.error({ upstream: name, reason: code, detail }, 'storing refreshed tokens failed: the session will end')
          const record = withLogin(before.record, name, held, login.claims, claimNames)
          return { record, held, isStored: false }
        }
        await pause(STORE_PAUSE_MS * tries)
      }
    }
  }

  const underLock = async (request: RefreshRequest, lock: HeldLock): Promise<Refreshed | undefined> => {
    const { tsid, upstream, needs, endsAtMs } = request
    const loaded = await records.load(tsid)
    const from = loaded?.record.providers.get(upstream.name)
    if (loaded === undefined || from === undefined) return undefined
    if (!needs(from, loaded.record)) {
      count(upstream.name, 'by_another_replica')
      return { record: loaded.record, held: from, isStored: true }
    }
    // Sending a rotated refresh token twice looks like theft: only the lock's holder sends it.
    if (!lock.isHeld)
      throw new Failure('store_unavailable', { detail: 'the lock of a refresh was lost', retryAfterSeconds: 1 })
    const login = await upstream.refresh(from, from.user, endsAtMs)
    const kept = await keep(request, loaded, from, login, lock.fence)
    count(upstream.name, kept?.isStored === false ? 'not_stored' : 'refreshed')
    return kept
  }

  return async (request) => {
    const { name } = request.upstream
    try {
      const held = await lock(request.tsid)
      try {
        return await underLock(request, held)
      } finally {
        await held.release()
      }
    } catch (error) {
      const { code, detail, status } = asFailure(error)
      count(name, code === 'no_session' ? 'refused' : status === 503 ? 'unavailable' : 'failed')
      const fields = { upstream: name, reason: code, detail }
      if (code === 'no_session') log.info(fields, 'refresh rejected by the upstream')
      else log.warn(fields, 'upstream refresh failed')
      throw error
    }
  }
}
