import { createTtlLru } from '../../cache/index.ts'
import type { Clock, EpochMs, UpstreamToken } from '../../core/index.ts'
import type { HeldTokens, SessionRecord } from './record.ts'

export type TokenKind = 'access_token' | 'id_token'

/** Tokens are refreshed this long before expiry, or a fifth of their lifetime before it if that is less. */
const MARGIN_MS = 60_000
const MARGIN_SHARE = 0.2

/** A cached token and its session. */
export interface LiveToken extends UpstreamToken {
  readonly subject: string
  readonly clientId: string
}

/** The provider's token of one kind, with its times; undefined without one. */
export function tokenOf(held: HeldTokens, kind: TokenKind, sessionEndsAtMs: EpochMs): UpstreamToken | undefined {
  const token = kind === 'access_token' ? held.accessToken : held.idToken
  if (token === undefined) return undefined
  const own = kind === 'access_token' ? held.expiresAtMs : held.idTokenExpiresAtMs
  const endMs = Math.min(own ?? Infinity, sessionEndsAtMs)
  const lifeMs = Math.max(0, (own ?? 0) - held.obtainedAtMs)
  const margin = Math.min(MARGIN_MS, MARGIN_SHARE * lifeMs)
  const freshUntilMs = Math.min((own ?? Infinity) - margin, sessionEndsAtMs)
  return { token, expiresAtMs: own === undefined ? undefined : endMs, freshUntilMs }
}

/** Upstream tokens cached in this process, limited in number and removed with their session. */
export interface LiveTokens {
  get(tsid: string, provider: string, kind: TokenKind): LiveToken | undefined
  /** Replaces the cached tokens of a provider. */
  keep(tsid: string, provider: string, held: HeldTokens, record: SessionRecord): void
  forget(tsid: string, provider?: string): void
  clear(): void
}

const KINDS: readonly TokenKind[] = ['access_token', 'id_token']

/** Caches the tokens of the `maxSessions` most recently used sessions, each for at most `maxMs` milliseconds. */
export function createLiveTokens(clock: Clock, maxSessions: number, maxMs = Infinity): LiveTokens {
  const sessions = createTtlLru<Map<string, LiveToken>>({ clock, maxEntries: maxSessions })
  const nameOf = (provider: string, kind: TokenKind) => `${kind} ${provider}`
  return {
    get(tsid, provider, kind) {
      const live = sessions.get(tsid)?.get(nameOf(provider, kind))
      return live !== undefined && clock.now() < live.freshUntilMs ? live : undefined
    },
    keep(tsid, provider, held, record) {
      const { subject, clientId, endsAtMs } = record
      const tokens = sessions.get(tsid) ?? new Map<string, LiveToken>()
      for (const kind of KINDS) {
        const token = tokenOf(held, kind, endsAtMs)
        if (token === undefined) tokens.delete(nameOf(provider, kind))
        else {
          const freshUntilMs = Math.min(token.freshUntilMs, clock.now() + maxMs)
          tokens.set(nameOf(provider, kind), { ...token, freshUntilMs, subject, clientId })
        }
      }
      sessions.set(tsid, tokens, endsAtMs)
    },
    forget(tsid, provider) {
      if (provider === undefined) sessions.delete(tsid)
      else for (const kind of KINDS) sessions.peek(tsid)?.delete(nameOf(provider, kind))
    },
    clear: () => sessions.clear(),
  }
}
