import { createTtlLru } from '../../cache/index.ts'
import type { Clock, EpochMs, UpstreamToken } from '../../core/index.ts'
import type { HeldTokens, SessionRecord } from './record.ts'

export type TokenKind = 'access_token' | 'id_token'

/** Tokens are refreshed this long before expiry, or a fifth of their lifetime before it if that is less. */
const MARGIN_MS = 60_000
const MARGIN_SHARE = 0.2

/** A cached token and its session. */
export interface LiveToken extends UpstreamToken {
  readonly provider: string
  readonly kind: TokenKind
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
  // Lists take a third of the memory of maps, and most have one token or two.
  const sessions = createTtlLru<LiveToken[]>({ clock, maxEntries: maxSessions })
  return {
    get(tsid, provider, kind) {
      const live = sessions.get(tsid)?.find((one) => one.kind === kind && one.provider === provider)
      return live !== undefined && clock.now() < live.freshUntilMs ? live : undefined
    },
    keep(tsid, provider, held, record) {
      const { subject, clientId, endsAtMs } = record
      const own = KINDS.flatMap((kind): LiveToken[] => {
        const token = tokenOf(held, kind, endsAtMs)
        if (token === undefined) return []
        const freshUntilMs = Math.min(token.freshUntilMs, clock.now() + maxMs)
        return [{ ...token, freshUntilMs, provider, kind, subject, clientId }]
      })
      const others = (sessions.get(tsid) ?? []).filter((one) => one.provider !== provider)
      sessions.set(tsid, [...others, ...own], endsAtMs)
    },
    forget(tsid, provider) {
      const tokens = provider === undefined ? undefined : sessions.peek(tsid)
      if (tokens === undefined) sessions.delete(tsid)
      else tokens.splice(0, tokens.length, ...tokens.filter((one) => one.provider !== provider))
    },
    clear: () => sessions.clear(),
  }
}
