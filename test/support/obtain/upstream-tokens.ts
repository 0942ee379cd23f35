import {
  Failure,
  Secret,
  type AuthenticatedCaller,
  type UpstreamToken,
  type UpstreamTokens,
} from '../../../src/core/index.ts'
import type { UpstreamUse } from '../../../src/resources/index.ts'
import { createCaller, START_MS } from '../ports.ts'

export const OURS = 'https://mcp.example.com'
export const HOUR = 3_600_000

/** Tokens of upstream sessions as a test has them: `kind-provider-tsid-N`, N counting the refreshes. */
export interface TestUpstreamTokens extends UpstreamTokens {
  /** Every question that was asked. */
  readonly asked: string[]
  /** How often a session's tokens were refused and renewed. */
  readonly refreshes: Map<string, number>
  readonly ended: Set<string>
  /** Session, provider and claims of what services wanted of a new login. */
  readonly demands: (readonly [tsid: string, provider: string, claims: string])[]
  lifetimeMs: number | undefined
  canRefresh: boolean
}

export function createUpstreamTokens(now: () => number): TestUpstreamTokens {
  const tsidOf = (caller: AuthenticatedCaller): string => {
    const { tsid } = caller.claims
    if (typeof tsid !== 'string' || tokens.ended.has(tsid)) throw new Failure('no_session')
    return tsid
  }
  const known = new Map<string, UpstreamToken>()
  const tokens: TestUpstreamTokens = {
    asked: [],
    refreshes: new Map(),
    ended: new Set(),
    demands: [],
    lifetimeMs: HOUR,
    canRefresh: true,
    async current(caller, provider, kind) {
      await Promise.resolve()
      const tsid = tsidOf(caller)
      const name = `${kind}-${provider}-${tsid}-${tokens.refreshes.get(tsid) ?? 0}`
      tokens.asked.push(name)
      const before = known.get(name)
      if (before !== undefined && now() < before.freshUntilMs) return before
      const endMs = tokens.lifetimeMs === undefined ? undefined : now() + tokens.lifetimeMs
      const token = { token: new Secret(name), expiresAtMs: endMs, freshUntilMs: (endMs ?? Infinity) - 60_000 }
      known.set(name, token)
      return token
    },
    async demand(caller, provider, claims) {
      await Promise.resolve()
      const tsid = tsidOf(caller)
      tokens.demands.push([tsid, provider, claims])
      tokens.ended.add(tsid)
    },
    async reject(caller, _provider, refused) {
      await Promise.resolve()
      const tsid = tsidOf(caller)
      const count = tokens.refreshes.get(tsid) ?? 0
      if (!refused.token.reveal().endsWith(`-${count}`)) return true
      if (!tokens.canRefresh) return false
      tokens.refreshes.set(tsid, count + 1)
      return true
    },
  }
  return tokens
}

/** A caller who logged in at our server. */
export const loggedIn = (tsid: string, values: { readonly token?: string; readonly subject?: string } = {}) =>
  createCaller({
    issuer: OURS,
    subject: values.subject ?? 'alice',
    token: values.token ?? `token-of-${tsid}`,
    claims: { tsid, client_id: 'editor', groups: ['admins'] },
    expiresAtMs: START_MS + 24 * HOUR,
  })

export const use = (values: Partial<UpstreamUse> = {}): UpstreamUse => ({
  provider: 'corp',
  kind: 'access_token',
  issuer: OURS,
  isExplicit: true,
  ...values,
})
