import { createPauses } from '../../cache/index.ts'
import {
  asFailure,
  type AuthenticatedCaller,
  type Clock,
  type Secret,
  type UpstreamToken,
  type UpstreamTokens,
} from '../../core/index.ts'
import type { SessionCounters } from './counters.ts'
import type { ClaimsRequests } from './claims-requests.ts'
import type { EndedSessions } from './ended.ts'
import { tokenOf, type LiveTokens, type TokenKind } from './live.ts'
import type { HeldTokens, SessionRecord } from './record.ts'
import type { SessionRecords } from './records.ts'
import { noSession, type Renewal } from './renewal.ts'

export interface TokenUseOptions {
  readonly issuer: string
  readonly records: SessionRecords
  readonly live: LiveTokens
  readonly ended: EndedSessions
  readonly renewal: Renewal
  readonly claimsRequests: Pick<ClaimsRequests, 'note'>
  readonly end: (tsid: string) => Promise<void>
  readonly clock: Clock
  readonly count: SessionCounters
}

/** A token that replaced a rejected one this recently is not refreshed again: the rejection is deliberate. */
const REFUSAL_PAUSE_MS = 30_000
const MOST_REFUSALS = 10_000

/** The token that a backend last rejected. */
interface Refusal {
  readonly token: Secret
  /** The upstream issues no other token. */
  readonly isFinal: boolean
}

const isAmong = (refused: Secret, { accessToken, idToken }: HeldTokens): boolean =>
  accessToken.equals(refused) || idToken?.equals(refused) === true

const keyOf = (tsid: string, provider: string): string => `${provider} ${tsid}`

const heldIn = (record: SessionRecord, provider: string): HeldTokens => {
  const held = record.providers.get(provider)
  if (held === undefined) throw noSession(`the session has no tokens of the upstream ${provider}`)
  return held
}

/** Provides the upstream tokens of a session to callers' requests. */
export function createTokenUse(options: TokenUseOptions): UpstreamTokens {
  const { issuer, records, live, ended, renewal, claimsRequests, clock, count } = options
  // A request that reads a rejected token during its refresh waits for the new one.
  const refusals = createPauses<Refusal>({ clock, maxEntries: MOST_REFUSALS })

  const tsidOf = (caller: AuthenticatedCaller): string => {
    const { tsid } = caller.claims
    if (caller.issuer !== issuer || typeof tsid !== 'string') throw noSession('the caller did not log in here')
    if (ended.has(tsid)) throw noSession('the session was ended')
    return tsid
  }

  /**
   * Subject and client of session and caller's token must match, else the session belongs to another user
   * (authserver.md §6).
   */
  const check = ({ subject, claims }: AuthenticatedCaller, session: Pick<SessionRecord, 'subject' | 'clientId'>) => {
    if (session.subject === subject && session.clientId === claims['client_id']) return
    count.session('mismatch')
    throw noSession('the session belongs to another user or client')
  }

  const load = async (caller: AuthenticatedCaller, tsid: string): Promise<SessionRecord> => {
    const loaded = await records.load(tsid)
    if (loaded === undefined) throw noSession('there is no such session')
    check(caller, loaded.record)
    return loaded.record
  }

  const isOver = (token: UpstreamToken): boolean => clock.now() >= (token.expiresAtMs ?? Infinity)

  /** Refreshes a token that is due or rejected; if that fails, uses it until it expires. */
  const renewed = async (
    tsid: string,
    provider: string,
    kind: TokenKind,
    due: UpstreamToken,
    refused: Secret | undefined,
  ): Promise<UpstreamToken> => {
    const needs = (held: HeldTokens, { endsAtMs }: SessionRecord) =>
      refused === undefined
        ? clock.now() >= (tokenOf(held, kind, endsAtMs)?.freshUntilMs ?? -Infinity)
        : isAmong(refused, held)
    try {
      const { held, record } = await renewal.renew(tsid, provider, needs)
      const token = tokenOf(held, kind, record.endsAtMs)
      if (token !== undefined && !isOver(token)) return token
    } catch (error) {
      if (asFailure(error).code === 'no_session' || isOver(due)) throw error
      return due
    }
    return renewal.lose(tsid, noSession(`the refresh at ${provider} returned no ${kind}`))
  }

  /** Loads a token that is not cached, or due. */
  const fromStore = async (caller: AuthenticatedCaller, tsid: string, provider: string, kind: TokenKind) => {
    const record = await load(caller, tsid)
    const held = heldIn(record, provider)
    const token = tokenOf(held, kind, record.endsAtMs)
    if (token === undefined) throw noSession(`the upstream ${provider} issued no ${kind}`)
    const last = refusals.get(keyOf(tsid, provider))
    const refused = last !== undefined && !last.isFinal && isAmong(last.token, held) ? last.token : undefined
    if (clock.now() < token.freshUntilMs && refused === undefined) {
      if (!ended.has(tsid)) live.keep(tsid, provider, held, record)
      return token
    }
    if (held.refreshToken !== undefined) return renewed(tsid, provider, kind, token, refused)
    return isOver(token) ? renewal.lose(tsid, noSession(`the upstream ${provider} issued no refresh token`)) : token
  }

  return {
    async current(caller, provider, kind) {
      const tsid = tsidOf(caller)
      const known = live.get(tsid, provider, kind)
      if (known === undefined) return fromStore(caller, tsid, provider, kind)
      check(caller, known)
      return known
    },
    async demand(caller, provider, claims) {
      const tsid = tsidOf(caller)
      const held = heldIn(await load(caller, tsid), provider)
      await claimsRequests.note(provider, held.user, claims)
      await options.end(tsid)
    },
    async reject(caller, provider, refused) {
      const tsid = tsidOf(caller)
      const record = await load(caller, tsid)
      live.forget(tsid, provider)
      const held = heldIn(record, provider)
      if (!isAmong(refused.token, held)) return true
      if (held.refreshToken === undefined) {
        return renewal.lose(tsid, noSession(`a backend rejected a token that ${provider} can't refresh`))
      }
      const key = keyOf(tsid, provider)
      const before = refusals.get(key)
      if (before !== undefined && (before.isFinal || !before.token.equals(refused.token))) return false
      const note = (isFinal: boolean) => refusals.set(key, { token: refused.token, isFinal }, REFUSAL_PAUSE_MS)
      note(false)
      try {
        const renewed = await renewal.renew(tsid, provider, (now) => isAmong(refused.token, now))
        note(isAmong(refused.token, renewed.held))
      } catch (error) {
        // Another backend may still accept it.
        refusals.delete(key)
        throw error
      }
      return true
    },
  }
}
