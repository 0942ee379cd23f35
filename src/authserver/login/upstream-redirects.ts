import { randomBytes } from 'node:crypto'
import { asFailure, Failure, Secret } from '../../core/index.ts'
import type { Callback, ChainLink } from '../addresses.ts'
import type { Reply } from '../reply.ts'
import { storeFailure } from '../store-failure.ts'
import { storedLogin } from '../tokens/stored-login.ts'
import type { Upstream, UpstreamLeg } from '../../upstreams/index.ts'
import { flowOf, type Flow } from './browser.ts'
import type { Conclude } from './conclude.ts'
import { lostPage } from './outcome.ts'
import { loginCounter, type LoginParts, type Visit } from './parts.ts'
import type { PendingLeg, PendingLogin } from './pending.ts'

/** Redirects to the upstreams and their callbacks, in order (authserver.md §4.3 to §4.5). */
export interface UpstreamRedirects {
  /** Redirects the browser to the login's next upstream. */
  redirect(login: PendingLogin, flow: Flow, visit: Visit): Promise<Reply>
  /** Handles the browser's return to one of these callbacks (those of one path). */
  handleCallback(query: string, callbacks: readonly Callback[], visit: Visit): Promise<Reply>
}

const random = (bytes: number): string => randomBytes(bytes).toString('base64url')

export function createUpstreamRedirects(parts: LoginParts, conclude: Conclude): UpstreamRedirects {
  const { addresses, clock, upstreams, pending, claimsRequests } = parts
  const count = loginCounter(parts.metrics)

  const linkAt = (resource: string, index: number): { link: ChainLink; upstream: Upstream } | undefined => {
    const link = addresses.chainOf(resource)[index]
    const upstream = link === undefined ? undefined : upstreams.get(link.provider)
    return link === undefined || upstream === undefined ? undefined : { link, upstream }
  }

  const send = async (login: PendingLogin, flow: Flow, claims?: string): Promise<Reply> => {
    const index = login.logins.length
    const next = linkAt(login.request.resource, index)
    if (next === undefined)
      throw new Failure('config_error', { detail: 'an upstream of a pending login is not configured' })
    const { link, upstream } = next
    // The state contains the flow's number, to find the cookie of this login among others.
    const state = `${flow.id}.${random(32)}`
    const nonce = random(16)
    const codeVerifier = random(32)
    const redirectUri = link.callback.url
    const asked: UpstreamLeg = { state, nonce, codeVerifier: new Secret(codeVerifier), redirectUri, claims }
    const url = await upstream.authorizationUrl(asked)
    const leg: PendingLeg = { ...login, index, provider: link.provider, redirectUri, nonce, codeVerifier, claims }
    await pending.put('leg', state, flow, leg, Math.max(1, login.endsAtMs - clock.now()))
    return { kind: 'redirect', url: url.href }
  }

  const redirect: UpstreamRedirects['redirect'] = async (login, flow, visit) => {
    try {
      return await send(login, flow)
    } catch (error) {
      return conclude.fail(login.request, flow.id, asFailure(storeFailure(error)), visit)
    }
  }

  const finishLeg = async (pendingLeg: PendingLeg, state: string, query: URLSearchParams): Promise<PendingLogin> => {
    const { index, provider, redirectUri, nonce, codeVerifier, claims: _asked, ...login } = pendingLeg
    const at = linkAt(login.request.resource, index)
    if (at === undefined || at.link.provider !== provider)
      throw new Failure('config_error', { detail: 'an upstream of a pending login is no longer configured' })
    const leg: UpstreamLeg = { state, nonce, codeVerifier: new Secret(codeVerifier), redirectUri }
    const came = await at.upstream.finish(leg, query)
    return { ...login, logins: [...login.logins, storedLogin(provider, came, clock.now())] }
  }

  /** Pending claims requests of a service that this login did not send. */
  const wantedOf = async ({ provider, claims }: PendingLeg, { logins }: PendingLogin): Promise<string | undefined> => {
    const user = logins.at(-1)?.subject
    return claims !== undefined || user === undefined ? undefined : claimsRequests.take(provider, user)
  }

  return {
    redirect,
    async handleCallback(text, callbacks, visit) {
      const query = new URLSearchParams(text)
      const [state = '', ...others] = query.getAll('state')
      const flowId = state.split('.', 1)[0] ?? ''
      const [flow] = callbacks.flatMap(({ origin }) => flowOf(flowId, visit.cookies, origin) ?? [])
      const leg =
        flow === undefined || others.length > 0 ? undefined : await pending.take<PendingLeg>('leg', state, flow)
      if (flow === undefined || leg === undefined || clock.now() >= leg.endsAtMs) {
        count('lost')
        return lostPage(visit.requestId)
      }
      let login: PendingLogin
      try {
        // A response of one upstream at the callback of another: mix-up (RFC 9700 §4.4).
        if (callbacks.every(({ url }) => url !== leg.redirectUri))
          throw new Failure('identity_provider_error', {
            detail: 'the response arrived at the callback of another upstream',
          })
        login = await finishLeg(leg, state, query)
        const claims = await wantedOf(leg, login)
        // The user is known only now: repeat the redirect with the claims requested for this user.
        if (claims !== undefined) return await send({ ...login, logins: leg.logins }, flow, claims)
        if (login.logins.length === addresses.chainOf(login.request.resource).length)
          return await conclude.finish(login, flow, visit)
      } catch (error) {
        return conclude.fail(leg.request, flow.id, asFailure(storeFailure(error)), visit)
      }
      return redirect(login, flow, visit)
    },
  }
}
