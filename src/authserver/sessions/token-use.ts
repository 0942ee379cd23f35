import { createPauses } from '../../cache/index.ts'
import { asFailure, type Clock, type Secret, type UpstreamToken } from '../../core/index.ts'
import type { EndedSessions } from './ended.ts'
import { tokenOf, type LiveTokens, type TokenKind } from './live.ts'
import type { HeldTokens, SessionRecord } from './record.ts'
import type { SessionRecords } from './records.ts'
import { noSession, type Renewal } from './renewal.ts'

export interface TokenUseOptions {
  readonly records: SessionRecords
  readonly live: LiveTokens
  readonly ended: EndedSessions
  readonly renewal: Renewal
  readonly clock: Clock
}

/** Subject and client of a session, by which its owner is recognized. */
export type SessionOwner = Pick<SessionRecord, 'subject' | 'clientId'>

/** Throws for a session that belongs to another owner. */
export type CheckOwner = (session: SessionOwner) => void

/** The upstream tokens of sessions, by session id. Every use checks the owner. */
export interface SessionTokens {
  /** A cached token that is neither due nor expired. Throws what `check` throws. */
  cached(tsid: string, provider: string, kind: TokenKind, check: CheckOwner): UpstreamToken | undefined
  /** A valid token, cached, stored or refreshed. Throws `no_session` and the errors of a refresh. */
  current(tsid: string, provider: string, kind: TokenKind, check: CheckOwner): Promise<UpstreamToken>
  /** Reports that a backend rejected this token: refreshes it once. False when no other token is possible. */
  reject(tsid: string, provider: string, refused: UpstreamToken, check: CheckOwner): Promise<boolean>
  /** The stored tokens of one provider. Throws `no_session`. */
  held(tsid: string, provider: string, check: CheckOwner): Promise<HeldTokens>
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

/** Provides the upstream tokens of sessions to requests. */
export function createTokenUse({ records, live, ended, renewal, clock }: TokenUseOptions): SessionTokens {
  // A request that reads a rejected token during its refresh waits for the new one.
  const refusals = createPauses<Refusal>({ clock, maxEntries: MOST_REFUSALS })

  const load = async (tsid: string, check: CheckOwner): Promise<SessionRecord> => {
    const loaded = await records.load(tsid)
    if (loaded === undefined) throw noSession('there is no such session')
    check(loaded.record)
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
  const fromStore = async (tsid: string, provider: string, kind: TokenKind, check: CheckOwner) => {
    const record = await load(tsid, check)
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

  const cached: SessionTokens['cached'] = (tsid, provider, kind, check) => {
    const known = live.get(tsid, provider, kind)
    if (known !== undefined) check(known)
    return known
  }

  return {
    cached,
    current: async (tsid, provider, kind, check) =>
      cached(tsid, provider, kind, check) ?? fromStore(tsid, provider, kind, check),
    held: async (tsid, provider, check) => heldIn(await load(tsid, check), provider),
    async reject(tsid, provider, refused, check) {
      const record = await load(tsid, check)
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
