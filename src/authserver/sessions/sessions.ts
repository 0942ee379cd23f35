import { asFailure, Failure, type Clock, type Log, type Metrics } from '../../core/index.ts'
import { mayHeal } from '../../oauth/index.ts'
import type { Seal, Store } from '../../storage/index.ts'
import type { Upstream } from '../../upstreams/index.ts'
import { createSessionCounters } from './counters.ts'
import { createClaimsRequests } from './claims-requests.ts'
import { createEndedSessions } from './ended.ts'
import { createLiveTokens, tokenOf } from './live.ts'
import { pickClaims, type HeldTokens, type SessionRecord } from './record.ts'
import { createSessionRecords } from './records.ts'
import { createRefresh, heldOf, withLogin } from './refresh.ts'
import { createRenewal, noSession } from './renewal.ts'
import type { UpstreamSessions } from './session.ts'
import { createRevocations } from './revocations.ts'
import { createTokenUse } from './token-use.ts'

export interface UpstreamSessionsOptions {
  /** `iss` of the tokens whose callers these sessions are for. */
  readonly issuer: string
  /** By name. */
  readonly upstreams: ReadonlyMap<string, Upstream>
  /** Claims of the first upstream to keep for access tokens; all others are dropped at once. */
  readonly claimNames: readonly string[]
  /** Longest lifetime of an access token, milliseconds: the retention of revoked sessions. */
  readonly longestTokenMs: number
  /** The state of this server only. */
  readonly store: Store
  readonly seal: Seal
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  /** Maximum sessions with tokens cached in this process. Default 10,000. */
  readonly maxLiveSessions?: number
}

const WRITE_TRIES = 8
const DEFAULT_LIVE_SESSIONS = 10_000

/** The claims of an ID token are valid as long as the ID token. */
const isDueForClaims = (held: HeldTokens, { endsAtMs }: SessionRecord, nowMs: number): boolean =>
  nowMs >= (tokenOf(held, 'access_token', endsAtMs)?.freshUntilMs ?? 0) ||
  nowMs >= (held.idTokenExpiresAtMs ?? Infinity)

/** The upstream sessions of one authorization server (authserver.md §6). */
export function createUpstreamSessions(options: UpstreamSessionsOptions): UpstreamSessions {
  const { issuer, upstreams, store, clock, log } = options
  const claimNames = new Set(options.claimNames)
  const count = createSessionCounters(options.metrics)
  const records = createSessionRecords(store, options.seal, clock)
  const live = createLiveTokens(clock, options.maxLiveSessions ?? DEFAULT_LIVE_SESSIONS)
  const keepMs = options.longestTokenMs
  const ended = createEndedSessions({
    store,
    seal: options.seal,
    clock,
    log,
    keepMs,
    onEnded: (tsid) => live.forget(tsid),
  })
  const refresh = createRefresh({ store, records, clock, log, claimNames, count: count.refresh })
  const end = async (tsid: string): Promise<void> => {
    // Both must be attempted: a session without tokens is unusable, and its id must be rejected.
    const results = await Promise.allSettled([ended.add(tsid), records.remove(tsid)])
    for (const result of results) if (result.status === 'rejected') throw result.reason
  }
  const lose = async (tsid: string): Promise<void> => {
    count.session('lost')
    await end(tsid)
  }
  const renewal = createRenewal({ upstreams, refresh, live, ended, end: lose, clock, log })
  const revocations = createRevocations(upstreams, log)

  return {
    ...createTokenUse({
      issuer,
      records,
      live,
      ended,
      renewal,
      claimsRequests: createClaimsRequests(store, options.seal),
      end: lose,
      clock,
      count,
    }),
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
    async renewClaims(tsid) {
      if (ended.has(tsid)) return undefined
      const loaded = await records.load(tsid)
      const held = loaded?.record.providers.get(loaded.record.firstProvider)
      if (loaded === undefined || held === undefined) return undefined
      const { claims, firstProvider } = loaded.record
      // Without a refresh token there is nothing newer; the family's own expiry applies.
      if (held.refreshToken === undefined) return { claims }
      try {
        // Of concurrent callers, on all replicas, one refreshes.
        const needs = ({ generation }: HeldTokens) => generation === held.generation
        return { claims: (await renewal.renew(tsid, firstProvider, needs)).record.claims }
      } catch (error) {
        const failure = asFailure(error)
        if (mayHeal(failure)) throw failure
        if (failure.code === 'no_session') return undefined
        // An unreachable upstream has ended nothing: its claims are valid as long as its tokens.
        if (isDueForClaims(held, loaded.record, clock.now())) throw error
        return { claims }
      }
    },
    async end(tsid) {
      count.session('ended')
      // Loaded before removal, because it lists what to revoke at the upstreams.
      const loading = records.load(tsid).catch(() => undefined)
      try {
        await end(tsid)
      } finally {
        const loaded = await loading
        if (loaded !== undefined) revocations.begin(loaded.record)
      }
    },
    opened: () => ended.opened(),
    isEnded: (tsid) => ended.has(tsid),
    isKept: async (tsid) => (await records.load(tsid)) !== undefined,
    async close() {
      ended.close()
      await renewal.settle()
      await revocations.settle()
      live.clear()
    },
  }
}
