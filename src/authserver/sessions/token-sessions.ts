import { Failure, type Clock, type Log } from '../../core/index.ts'
import type { Seal, Store } from '../../storage/index.ts'
import type { Upstream, UpstreamLogin } from '../../upstreams/index.ts'
import type { SessionCounters } from './counters.ts'
import { createEndedSessions, type EndedSessions } from './ended.ts'
import { createLiveTokens } from './live.ts'
import { pickClaims, type SessionRecord } from './record.ts'
import { createSessionRecords, type SessionRecords } from './records.ts'
import { createRefresh, heldOf, withLogin } from './refresh.ts'
import { createRenewal, noSession, type Renewal } from './renewal.ts'
import { createRevocations, type RevocationOutcome } from './revocations.ts'
import type { NewUpstreamSession } from './session.ts'
import { createTokenUse, type SessionTokens } from './token-use.ts'

export interface TokenSessionsOptions {
  /** By name. */
  readonly upstreams: ReadonlyMap<string, Upstream>
  /** Claims of the first upstream to keep; all others are dropped at once. */
  readonly claimNames: readonly string[]
  /** Retention of ended sessions in milliseconds. */
  readonly keepEndedMs: number
  /** The state of one owner of sessions only. */
  readonly store: Store
  readonly seal: Seal
  readonly clock: Clock
  readonly log: Log
  readonly count: SessionCounters
  /** Maximum sessions with tokens cached in this process. Default 10,000. */
  readonly maxLiveSessions?: number | undefined
  /** A cached token is read again after this time, in milliseconds. Default: when it is due. */
  readonly maxCachedMs?: number | undefined
  /** Called for each session that ends here because its upstream or a backend rejected its tokens. */
  readonly onRejected?: ((tsid: string) => void) | undefined
}

/**
 * Sessions with upstream tokens of any owner: logins at the embedded authorization server, and connected accounts.
 * Sealed records, refresh under a lock across replicas, and a list of ended sessions.
 */
export interface TokenSessions {
  readonly tokens: SessionTokens
  readonly records: SessionRecords
  readonly ended: EndedSessions
  readonly renewal: Renewal
  /** Throws `internal_error` for an existing `tsid`. */
  create(session: NewUpstreamSession): Promise<void>
  /** Stores the result of an upstream, replacing this provider's previous one. Throws `no_session`. */
  addLeg(tsid: string, provider: string, login: UpstreamLogin): Promise<void>
  /**
   * Ends the session here and on all replicas within 2 s, then revokes its tokens at the upstreams, of which
   * `revocation` has the outcomes. Idempotent.
   */
  end(tsid: string): Promise<{ readonly revocation: Promise<ReadonlyMap<string, RevocationOutcome>> }>
  /** The same for a session that only a new login can replace, without revocation. */
  lose(tsid: string): Promise<void>
  close(): Promise<void>
}

const WRITE_TRIES = 8
const DEFAULT_LIVE_SESSIONS = 10_000

export function createTokenSessions(options: TokenSessionsOptions): TokenSessions {
  const { upstreams, store, seal, clock, log, count } = options
  const claimNames = new Set(options.claimNames)
  const records = createSessionRecords(store, seal, clock)
  const live = createLiveTokens(clock, options.maxLiveSessions ?? DEFAULT_LIVE_SESSIONS, options.maxCachedMs)
  const ended = createEndedSessions({
    store,
    seal,
    clock,
    log,
    keepMs: options.keepEndedMs,
    onEnded: (tsid) => live.forget(tsid),
  })
  const refresh = createRefresh({ store, records, clock, log, claimNames, count: count.refresh })
  const remove = async (tsid: string): Promise<void> => {
    // Both must be attempted: a session without tokens is unusable, and its id must be rejected.
    const results = await Promise.allSettled([ended.add(tsid), records.remove(tsid)])
    for (const result of results) if (result.status === 'rejected') throw result.reason
  }
  const lose = async (tsid: string): Promise<void> => {
    count.session('lost')
    await remove(tsid)
  }
  const endRejected = (tsid: string): Promise<void> => {
    if (!ended.hasLearned(tsid)) options.onRejected?.(tsid)
    return lose(tsid)
  }
  const renewal = createRenewal({ upstreams, refresh, live, ended, end: endRejected, clock, log })
  const revocations = createRevocations(upstreams, log)

  return {
    tokens: createTokenUse({ records, live, ended, renewal, clock }),
    records,
    ended,
    renewal,
    lose,
    async create({ tsid, ...session }) {
      const record: SessionRecord = { ...session, claims: pickClaims({}, claimNames), providers: new Map() }
      if (!(await records.add(tsid, record))) throw new Failure('internal_error', { detail: 'duplicate session id' })
      count.session('created')
    },
    async addLeg(tsid, provider, login) {
      const held = heldOf(login, clock.now())
      for (let tries = 0; tries < WRITE_TRIES; tries++) {
        const loaded = await records.load(tsid)
        if (loaded === undefined || ended.has(tsid)) throw noSession('there is no such session')
        const record = withLogin(loaded.record, provider, held, login.claims, claimNames)
        if (await records.replace(tsid, loaded.version, record)) return
      }
      throw new Failure('store_unavailable', { detail: 'the session changes too often', retryAfterSeconds: 1 })
    },
    async end(tsid) {
      count.session('ended')
      // Loaded before removal, because it lists what to revoke at the upstreams.
      const loading = records.load(tsid).catch(() => undefined)
      let revocation: Promise<ReadonlyMap<string, RevocationOutcome>> = Promise.resolve(new Map())
      try {
        await remove(tsid)
      } finally {
        const loaded = await loading
        if (loaded !== undefined) revocation = revocations.begin(loaded.record)
      }
      return { revocation }
    },
    async close() {
      ended.close()
      await renewal.settle()
      await revocations.settle()
      live.clear()
    },
  }
}
