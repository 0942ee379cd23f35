import { Failure } from '../../core/index.ts'
import type { Callback } from '../addresses.ts'
import { LOGIN_MS } from '../lifespans.ts'
import { OAuthError } from '../oauth-error.ts'
import { consentPage } from '../pages/consent-page.ts'
import type { Reply } from '../reply.ts'
import { beginFlow, flowDigest, flowOf, isFlowOf } from './browser.ts'
import type { Conclude } from './conclude.ts'
import type { UpstreamRedirects } from './upstream-redirects.ts'
import type { LoginRequest } from './login-request.ts'
import { lostPage } from './outcome.ts'
import type { LoginParts, Visit } from './parts.ts'
import type { PendingLogin } from './pending.ts'

/** Size limit of the consent form, in bytes: a sealed request in a hidden field. */
export const CONSENT_FORM_BYTES = 32 * 1024

/** The consent step before any redirect (authserver.md §4.1). */
export interface ConsentStep {
  /** Shows the page, or continues when this browser consented before. `callback` is the first of the login's. */
  present(request: LoginRequest, callback: Callback, visit: Visit): Promise<Reply>
  /** The page on the callback's origin, when `authorize` is on another origin. */
  handedOver(query: string, visit: Visit): Promise<Reply>
  /** Handles the form. */
  submit(form: URLSearchParams, callbacks: readonly Callback[], visit: Visit): Promise<Reply>
}

export function createConsentStep(
  parts: LoginParts,
  upstreamRedirects: UpstreamRedirects,
  conclude: Conclude,
): ConsentStep {
  const { addresses, clock, audit, upstreams, tickets, consents, pending } = parts

  const next = (request: LoginRequest): { name: string; host: string } | undefined => {
    const upstream = upstreams.get(addresses.chainOf(request.resource)[0]?.provider ?? '')
    return upstream && { name: upstream.name, host: new URL(upstream.identityProvider).host }
  }

  const present: ConsentStep['present'] = async (request, callback, visit) => {
    const { origin } = callback
    const { flow, setCookies } = beginFlow(visit.cookies, origin, clock.now())
    const rememberedFor = request.mustAsk ? undefined : await consents.find(request, visit.cookies, origin)
    if (rememberedFor !== undefined) {
      const login = {
        request,
        consent: { rememberedFor },
        flowId: flow.id,
        endsAtMs: clock.now() + LOGIN_MS,
        logins: [],
      }
      const reply = await upstreamRedirects.redirect(login, flow, visit)
      return reply.kind === 'redirect' ? { ...reply, setCookies } : reply
    }
    const value = tickets.write('consent', request, { id: flow.id, digest: flowDigest(flow) })
    const page = { request, next: next(request), user: undefined, action: callback.continuePath }
    const html = consentPage({ ...page, field: { name: 'ticket', value } })
    return { kind: 'page', status: 200, html, setCookies }
  }

  const decided = ({ client, resource }: LoginRequest, decision: 'continue' | 'cancel', { requestId }: Visit): void =>
    audit({
      type: 'consent',
      outcome: decision === 'continue' ? 'success' : 'denied',
      requestId,
      clientId: client.id,
      target: { type: 'resource', name: resource },
    })

  const cancelled = new OAuthError('access_denied', 'the user canceled')

  return {
    present,
    async handedOver(query, visit) {
      const ticket = await tickets.read('handover', new URLSearchParams(query).get('ticket') ?? '')
      const [link] = ticket === undefined ? [] : addresses.chainOf(ticket.request.resource)
      if (ticket === undefined || link === undefined) return lostPage(visit.requestId)
      return present(ticket.request, link.callback, visit)
    },
    async submit(form, callbacks, visit) {
      const decision = form.get('decision')
      if (decision !== 'continue' && decision !== 'cancel')
        throw new Failure('bad_request', { detail: 'consent form without a decision' })
      const findFlow = (id: string) => callbacks.flatMap(({ origin }) => flowOf(id, visit.cookies, origin) ?? [])[0]

      const confirm = form.get('confirm')
      if (confirm !== null) {
        const [id = '', token = ''] = confirm.split('.')
        const flow = findFlow(id)
        const login = flow && (await pending.take<PendingLogin>('confirm', token, flow))
        if (login === undefined || clock.now() >= login.endsAtMs) return lostPage(visit.requestId)
        decided(login.request, decision, visit)
        return decision === 'cancel' ? conclude.cancel(login.request, id, cancelled) : conclude.issue(login, visit)
      }

      const ticket = await tickets.read('consent', form.get('ticket') ?? '')
      const flow = ticket?.flow === undefined ? undefined : findFlow(ticket.flow.id)
      // The cookie protects against cross-site forms, the ticket against forged ones.
      if (ticket?.flow === undefined || flow === undefined || !isFlowOf(flow, ticket.flow.digest))
        return lostPage(visit.requestId)
      const { request } = ticket
      decided(request, decision, visit)
      if (decision === 'cancel') return conclude.cancel(request, flow.id, cancelled)
      const login = {
        request,
        consent: 'given',
        flowId: flow.id,
        endsAtMs: clock.now() + LOGIN_MS,
        logins: [],
      } as const
      return upstreamRedirects.redirect(login, flow, visit)
    },
  }
}
