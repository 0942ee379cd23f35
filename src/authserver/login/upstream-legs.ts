import { randomBytes } from 'node:crypto'
import { type Clock, type EpochMs, Secret } from '../../core/index.ts'
import type { Upstream, UpstreamLeg } from '../../upstreams/index.ts'
import { type Flow, flowOf } from './browser.ts'
import type { PendingLogins } from './pending.ts'

/** Part of a redirect that its sender chooses. */
type Wanted = Pick<UpstreamLeg, 'redirectUri' | 'claims' | 'scopes'>

/** A browser that came back from an upstream, with what was stored for it. */
export interface ReturnedLeg<T> {
  readonly flow: Flow
  readonly leg: UpstreamLeg
  readonly record: T
}

/** An authorization request that was not sent yet. */
export interface PreparedLeg<T> {
  /** Stores `record` for the return of the browser, and returns the URL of the redirect. Throws `StoreError`. */
  store(record: T): Promise<string>
}

/** Redirects to upstreams: single-use, bound to one browser (authserver.md §4.2, §4.3). */
export interface UpstreamLegs<T extends { readonly endsAtMs: EpochMs }> {
  /** Creates the authorization request. Throws the errors of `Upstream.authorizationUrl`. */
  prepare(upstream: Pick<Upstream, 'authorizationUrl'>, flow: Flow, wanted: Wanted): Promise<PreparedLeg<T>>
  /**
   * Takes what was stored; undefined for another browser, an expired or used `state`, and several of them. Throws
   * `StoreError`.
   */
  take(
    query: URLSearchParams,
    cookies: ReadonlyMap<string, string>,
    origins: readonly string[],
  ): Promise<ReturnedLeg<T> | undefined>
}

interface Stored extends Wanted {
  readonly sentTo: string
  readonly nonce: string
  readonly codeVerifier: string
}

const random = (bytes: number): string => randomBytes(bytes).toString('base64url')

/** `kind` separates the redirects of different senders in the store. */
export function createUpstreamLegs<T extends { readonly endsAtMs: EpochMs }>(
  kind: string,
  pending: PendingLogins,
  clock: Clock,
): UpstreamLegs<T> {
  return {
    async prepare(upstream, flow, wanted) {
      // The state contains the flow's number, to find the cookie of this login among others.
      const state = `${flow.id}.${random(32)}`
      const [nonce, codeVerifier] = [random(16), random(32)]
      const url = await upstream.authorizationUrl({ ...wanted, state, nonce, codeVerifier: new Secret(codeVerifier) })
      return {
        async store(record) {
          const stored: T & Stored = { ...record, ...wanted, nonce, codeVerifier, sentTo: url.origin + url.pathname }
          await pending.put(kind, state, flow, stored, Math.max(1, record.endsAtMs - clock.now()))
          return url.href
        },
      }
    },
    async take(query, cookies, origins) {
      const [state = '', ...others] = query.getAll('state')
      const flowId = state.split('.', 1)[0] ?? ''
      const [flow] = origins.flatMap((origin) => flowOf(flowId, cookies, origin) ?? [])
      if (flow === undefined || others.length > 0) return undefined
      const record = await pending.take<T & Stored>(kind, state, flow)
      if (record === undefined || clock.now() >= record.endsAtMs) return undefined
      const { nonce, codeVerifier, redirectUri, claims, scopes, sentTo } = record
      const leg = { state, nonce, codeVerifier: new Secret(codeVerifier), redirectUri, claims, scopes, sentTo }
      return { flow, record, leg }
    },
  }
}
