import { asFailure, Failure } from '../../core/index.ts'
import type { Callback, ChainLink } from '../addresses.ts'
import type { Reply } from '../reply.ts'
import { storeFailure } from '../store-failure.ts'
import { storedLogin } from '../tokens/stored-login.ts'
import type { Upstream, UpstreamLeg } from '../../upstreams/index.ts'
import type { Flow } from './browser.ts'
import type { Conclude } from './conclude.ts'
import { lostPage } from './outcome.ts'
import { loginCounter, type LoginParts, type Visit } from './parts.ts'
import type { PendingLeg, PendingLogin } from './pending.ts'
import type { PersonSteps } from './person-logins.ts'
import { createUpstreamLegs } from './upstream-legs.ts'

/** Redirects to the upstreams and their callbacks, in order (authserver.md §4.3 to §4.5). */
export interface UpstreamRedirects {
  /** Redirects the browser to the login's next upstream. */
  redirect(login: PendingLogin, flow: Flow, visit: Visit): Promise<Reply>
  /** Handles the browser's return to one of these callbacks (those of one path). */
  handleCallback(query: string, callbacks: readonly Callback[], visit: Visit): Promise<Reply>
}

export function createUpstreamRedirects(
  parts: LoginParts,
  conclude: Conclude,
  persons: Pick<PersonSteps, 'handleCallback'>,
): UpstreamRedirects {
  const { addresses, clock, upstreams, claimsRequests } = parts
  const legs = createUpstreamLegs<PendingLeg>('leg', parts.pending, clock)
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
    const leg = await legs.prepare(upstream, flow, { redirectUri: link.callback.url, claims })
    return { kind: 'redirect', url: await leg.store({ ...login, index, provider: link.provider }) }
  }

  const redirect: UpstreamRedirects['redirect'] = async (login, flow, visit) => {
    try {
      return await send(login, flow)
    } catch (error) {
      return conclude.fail(login.request, flow.id, asFailure(storeFailure(error)), visit)
    }
  }

  const finishLeg = async (
    { index, provider, ...login }: PendingLeg,
    leg: UpstreamLeg,
    query: URLSearchParams,
  ): Promise<PendingLogin> => {
    const at = linkAt(login.request.resource, index)
    if (at === undefined || at.link.provider !== provider)
      throw new Failure('config_error', { detail: 'an upstream of a pending login is no longer configured' })
    const came = await at.upstream.finish(leg, query)
    return { ...login, logins: [...login.logins, storedLogin(provider, came, clock.now())] }
  }

  /** Pending claims requests of a service that this login did not send. */
  const wantedOf = async (
    { provider }: PendingLeg,
    { claims }: UpstreamLeg,
    { logins }: PendingLogin,
  ): Promise<string | undefined> => {
    const user = logins.at(-1)?.subject
    return claims !== undefined || user === undefined ? undefined : claimsRequests.take(provider, user)
  }

  return {
    redirect,
    async handleCallback(text, callbacks, visit) {
      const query = new URLSearchParams(text)
      const origins = callbacks.map(({ origin }) => origin)
      const returned = await legs.take(query, visit.cookies, origins)
      if (returned === undefined) {
        const person = await persons.handleCallback(query, callbacks, visit)
        if (person !== undefined) return person
        count('lost')
        return lostPage(visit.requestId)
      }
      const { flow, leg, record } = returned
      let login: PendingLogin
      try {
        // A response of one upstream at the callback of another: mix-up (RFC 9700 §4.4).
        if (callbacks.every(({ url }) => url !== leg.redirectUri))
          throw new Failure('identity_provider_error', {
            detail: 'the response arrived at the callback of another upstream',
          })
        login = await finishLeg(record, leg, query)
        const claims = await wantedOf(record, leg, login)
        // The user is known only now: repeat the redirect with the claims requested for this user.
        if (claims !== undefined) return await send({ ...login, logins: record.logins }, flow, claims)
        if (login.logins.length === addresses.chainOf(login.request.resource).length)
          return await conclude.finish(login, flow, visit)
      } catch (error) {
        return conclude.fail(record.request, flow.id, asFailure(storeFailure(error)), visit)
      }
      return redirect(login, flow, visit)
    },
  }
}
