import { asFailure, type Clock, type Log, type Metrics, type EpochMs } from '../../core/index.ts'
import { mayHeal } from '../../oauth/index.ts'
import type { Seal, Store } from '../../storage/index.ts'
import type { Upstream } from '../../upstreams/index.ts'
import { createCallerTokens } from './caller-tokens.ts'
import { createClaimsRequests } from './claims-requests.ts'
import { createSessionCounters } from './counters.ts'
import { tokenOf } from './live.ts'
import type { HeldTokens, SessionRecord } from './record.ts'
import type { UpstreamSessions } from './session.ts'
import { createTokenSessions } from './token-sessions.ts'

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

/** The claims of an ID token are valid as long as the ID token. */
const isDueForClaims = (held: HeldTokens, { endsAtMs }: SessionRecord, nowMs: EpochMs): boolean =>
  nowMs >= (tokenOf(held, 'access_token', endsAtMs)?.freshUntilMs ?? 0) ||
  nowMs >= (held.idTokenExpiresAtMs ?? Infinity)

/** The upstream sessions of one authorization server (authserver.md §6). */
export function createUpstreamSessions(options: UpstreamSessionsOptions): UpstreamSessions {
  const { issuer, upstreams, claimNames, store, seal, clock, log } = options
  const count = createSessionCounters(options.metrics)
  const sessions = createTokenSessions({
    upstreams,
    claimNames,
    keepEndedMs: options.longestTokenMs,
    store,
    seal,
    clock,
    log,
    count,
    maxLiveSessions: options.maxLiveSessions,
  })
  const { records, renewal, tokens, ended } = sessions
  const claimsRequests = createClaimsRequests(store, seal)

  return {
    ...createCallerTokens({
      issuer,
      tokens,
      ended,
      claimsRequests,
      end: (tsid) => sessions.lose(tsid),
      count: count.session,
    }),
    create: (session) => sessions.create(session),
    addLeg: (tsid, provider, login) => sessions.addLeg(tsid, provider, login),
    async end(tsid) {
      await sessions.end(tsid)
    },
    close: () => sessions.close(),
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
    opened: () => ended.opened(),
    isEnded: (tsid) => ended.has(tsid),
    isKept: async (tsid) => (await records.load(tsid)) !== undefined,
  }
}
