import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { asFailure, Failure, type Clock, type Log } from '../../core/index.ts'
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
  /** False: only this process has these tokens, and what is in the store can't be refreshed any more. */
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

/** One refresh: whose, and whether what is in the store by now still needs it. */
export interface RefreshRequest {
  readonly tsid: string
  readonly upstream: Upstream
  readonly needs: (held: HeldTokens, record: SessionRecord) => boolean
  /** Nothing of the upstream's is waited for after this (`performance.now()`). */
  readonly endsAtMs: number
}

/** Renewed each third of it: the lock outlives a failover of the store, and not for long a replica that died. */
const LOCK_MS = 8_000
/** Whoever waits hears 503 then, or goes on with a token that still lives: one that died must hold up nobody for long. */
const LOCK_WAIT_MS = 2_000
const WRITE_TRIES = 8
const STORE_TRIES = 3
const STORE_PAUSE_MS = 100

/** What a provider gave, as it is held from now on. */
export const heldOf = ({ tokens, subject }: Pick<UpstreamLogin, 'tokens' | 'subject'>, nowMs: number): HeldTokens => ({
  ...tokens,
  user: subject,
  generation: randomBytes(8).toString('base64url'),
  obtainedAtMs: nowMs,
})

/** A record in which a provider has other tokens; a name or e-mail that new claims lack stays (it was user info's). */
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
 * Refreshes a provider's tokens of a session, one replica at a time (authserver.md §6): who waited for the lock takes what
 * the one before has stored. The new pair is stored before anybody uses it. Undefined when there is no session (any more).
 * Throws what `Upstream.refresh` throws, and `store_unavailable` as long as nothing was sent.
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

  /** Stores it on what is there now; undefined when the session has ended meanwhile. Throws `store_unavailable`. */
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
      // Stored by a try whose answer was lost, or by who took the lock when ours had run out.
      if (there.generation !== from.generation) return loaded.record
      const record = withLogin(loaded.record, upstream.name, held, login.claims, claimNames)
      if (await records.replace(tsid, loaded.version, record, fence)) return record
    }
    throw new Failure('store_unavailable', { detail: 'the session changes too often', retryAfterSeconds: 1 })
  }

  /** Three tries; then this process alone has the new pair. */
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
          log.error(
            { upstream: name, reason: code, detail },
            'refreshed tokens could not be stored: the session will end',
          )
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
    // Sent twice, a refresh token that rotates looks stolen: whoever has the lock by now sends it.
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
      if (code === 'no_session') log.info(fields, 'refresh refused by the upstream')
      else log.warn(fields, 'upstream tokens could not be refreshed')
      throw error
    }
  }
}
