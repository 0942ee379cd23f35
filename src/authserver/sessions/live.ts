import { createTtlLru } from '../../cache/index.ts'
import type { Clock, UpstreamToken } from '../../core/index.ts'
import type { HeldTokens, SessionRecord } from './record.ts'

export type TokenKind = 'access_token' | 'id_token'

/** Tokens are due this long before their end, or a fifth of their life before it where that is less. */
const MARGIN_MS = 60_000
const MARGIN_SHARE = 0.2

/** What a live token is kept with: the session whose it is. */
export interface LiveToken extends UpstreamToken {
  readonly subject: string
  readonly clientId: string
}

/** The token of one kind among what a provider gave, with its times; undefined when there is none of that kind. */
export function tokenOf(held: HeldTokens, kind: TokenKind, sessionEndsAtMs: number): UpstreamToken | undefined {
  const token = kind === 'access_token' ? held.accessToken : held.idToken
  if (token === undefined) return undefined
  const own = kind === 'access_token' ? held.expiresAtMs : held.idTokenExpiresAtMs
  const endMs = Math.min(own ?? Infinity, sessionEndsAtMs)
  const lifeMs = Math.max(0, (own ?? 0) - held.obtainedAtMs)
  const margin = Math.min(MARGIN_MS, MARGIN_SHARE * lifeMs)
  const freshUntilMs = Math.min((own ?? Infinity) - margin, sessionEndsAtMs)
  return { token, expiresAtMs: own === undefined ? undefined : endMs, freshUntilMs }
}

/** The live tokens of this process: bounded, gone with their session. */
export interface LiveTokens {
  get(tsid: string, provider: string, kind: TokenKind): LiveToken | undefined
  /** Keeps what is live of a provider's tokens, in the place of what was kept before. */
  keep(tsid: string, provider: string, held: HeldTokens, record: SessionRecord): void
  forget(tsid: string, provider?: string): void
  clear(): void
}

const KINDS: readonly TokenKind[] = ['access_token', 'id_token']

/** Keeps the live tokens of at most `maxSessions` sessions, those used last. */
export function createLiveTokens(clock: Clock, maxSessions: number): LiveTokens {
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
        else tokens.set(nameOf(provider, kind), { ...token, subject, clientId })
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
