import { randomBytes } from 'node:crypto'
import {
  asFailure,
  type AuditOutcome,
  Failure,
  type Clock,
  type LocalHandler,
  type Log,
  type Metrics,
} from '../core/index.ts'
import {
  beginFlow,
  type BrowserEndpoint,
  CONSENT_FORM_BYTES,
  endFlow,
  type Flow,
  flowOf,
  type PendingLogins,
  postedBack,
  readForm,
  type Reply,
  storeFailure,
  type UpstreamLegs,
  type Visit,
} from '../authserver/index.ts'
import { type ConnectionProvider, FORM_POST } from '../resources/index.ts'
import type { Upstream, UpstreamLeg, UpstreamLogin } from '../upstreams/index.ts'
import type { Accounts } from './accounts.ts'
import type { ApiKeys } from './api-keys.ts'
import type { ConnectionAudit } from './audit.ts'
import type { Manage } from './manage.ts'
import {
  canceledPage,
  completedPage,
  consentPage,
  failurePage,
  type FormProblem,
  lostPage,
  otherPersonPage,
  unknownLinkPage,
} from './pages.ts'
import { isPerson, matchIn, type PersonLogin, type Persons } from './persons.ts'
import { FLOW_MS, type PendingRedirect } from './redirects.ts'
import type { Ticket, Tickets } from './tickets.ts'

export interface FlowParts {
  /** `baseUrl` without a trailing slash. */
  readonly baseUrl: string
  readonly providers: ReadonlyMap<string, ConnectionProvider>
  readonly upstreams: ReadonlyMap<string, Upstream>
  readonly keys: ReadonlyMap<string, ApiKeys>
  readonly logins: readonly PersonLogin[]
  readonly isSingleUser: boolean
  readonly routesOf: (provider: string) => readonly { readonly name: string; readonly host: string }[]
  readonly label: (provider: string) => string
  readonly tickets: Tickets
  readonly accounts: Pick<Accounts, 'connect'>
  readonly persons: Persons
  /** The page that lists connections. */
  readonly manage: Pick<Manage, 'entered'>
  readonly pending: PendingLogins
  readonly legs: UpstreamLegs<PendingRedirect>
  readonly audit: ConnectionAudit
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
}

type RefusalCause = 'unknown' | 'other_person' | 'other_browser' | 'canceled' | 'failed'

const OUTCOMES: Readonly<Record<RefusalCause, AuditOutcome>> = {
  unknown: 'denied',
  other_person: 'denied',
  other_browser: 'denied',
  canceled: 'failure',
  failed: 'error',
}

/** A consent page that was shown. */
interface PendingConsent {
  readonly link: string
  readonly person: string | undefined
  readonly endsAtMs: number
}

const random = (bytes: number): string => randomBytes(bytes).toString('base64url')

/** The pages behind a link: login, consent, the provider or the form for a key, completion (connections.md §3). */
export function createFlow(parts: FlowParts, page: BrowserEndpoint): readonly LocalHandler[] {
  const { baseUrl, providers, upstreams, keys, logins, tickets, accounts, pending, legs, clock, log, label } = parts
  const { origin, pathname } = new URL(baseUrl)
  const base = pathname.replace(/\/$/, '')
  const callbackUrl = `${baseUrl}/connect/callback`
  const continuePath = `${base}/connect/continue`
  const refusals = parts.metrics.counter(
    'extauth_connect_refusals_total',
    'Attempts to connect an account that failed.',
    ['cause'],
  )
  const refuse = (cause: RefusalCause, { requestId }: Visit, ticket?: Ticket): void => {
    refusals.with(cause).add()
    const { owner, provider, id: prompt } = ticket ?? {}
    parts.audit({
      type: 'connect_refused',
      outcome: OUTCOMES[cause],
      requestId,
      owner,
      provider,
      details: { cause, prompt },
    })
  }

  const consent = async (
    { link, person }: Pick<PendingConsent, 'link' | 'person'>,
    ticket: Ticket,
    flow: Flow,
    more: { readonly setCookies?: readonly string[]; readonly problem?: FormProblem } = {},
  ): Promise<Reply> => {
    const token = random(32)
    const record: PendingConsent = { link, person, endsAtMs: ticket.expiresAtMs }
    await pending.put('connect-consent', token, flow, record, Math.max(1, ticket.expiresAtMs - clock.now()))
    const provider = providers.get(ticket.provider)
    const key = keys.get(ticket.provider)
    const upstream = upstreams.get(ticket.provider)
    const configured = provider?.oidcConfig?.scopes ?? provider?.oauth2Config?.scopes ?? []
    return consentPage(
      {
        label: label(ticket.provider),
        host: key?.host ?? (upstream === undefined ? ticket.provider : new URL(upstream.identityProvider).host),
        routes: parts.routesOf(ticket.provider),
        scopes: [...new Set([...configured, ...(ticket.scopes ?? [])])],
        createdAtMs: ticket.createdAtMs,
        person,
        action: continuePath,
        confirm: `${flow.id}.${token}`,
        key:
          key === undefined
            ? undefined
            : {
                label: key.label,
                helpUrl: key.helpUrl,
                ...(more.problem === undefined ? {} : { problem: more.problem }),
              },
      },
      more.setCookies,
    )
  }

  /** The link itself. Opening it uses nothing up, so that mail scanners and previews do no harm. */
  const open = async (link: string, visit: Visit): Promise<Reply> => {
    const ticket = await tickets.peek(link)
    if (ticket === undefined) {
      refuse('unknown', visit)
      return unknownLinkPage(visit.requestId)
    }
    const { flow, setCookies } = beginFlow(visit.cookies, origin, clock.now())
    if (parts.isSingleUser) return consent({ link, person: undefined }, ticket, flow, { setCookies })
    const login = logins.find(({ issuer }) => issuer === ticket.owner.issuer)
    if (login === undefined)
      throw new Failure('config_error', { detail: `connections.login has no entry for ${ticket.owner.issuer}` })
    const leg = await legs.prepare(login.at(ticket.match), flow, { redirectUri: callbackUrl })
    const endsAtMs = clock.now() + FLOW_MS
    const url = await leg.store({ step: 'person', link, ticket: undefined, at: login.issuer, endsAtMs })
    return { kind: 'redirect', url, setCookies }
  }

  /** The person came back from the own issuer. */
  const proven = async (
    record: PendingRedirect,
    leg: UpstreamLeg,
    query: URLSearchParams,
    flow: Flow,
    visit: Visit,
  ) => {
    const login = logins.find(({ issuer }) => issuer === record.at)
    if (login === undefined) throw new Failure('config_error', { detail: 'a login is no longer configured' })
    const { claims, name } = await login.finish(leg, query)
    if (record.step === 'manage') {
      const match = matchIn(login.match, claims)
      if (match === undefined)
        throw new Failure('identity_provider_error', {
          detail: 'the ID token has no claims of connections.login.match',
        })
      return parts.manage.entered(login.issuer, match, name, flow)
    }
    const ticket = await tickets.peek(record.link)
    if (ticket === undefined) {
      refuse('unknown', visit)
      return unknownLinkPage(visit.requestId)
    }
    if (ticket.owner.issuer !== login.issuer || !isPerson(ticket.match, claims)) {
      refuse('other_person', visit, ticket)
      log.warn(
        { provider: ticket.provider, prompt: ticket.id, request: visit.requestId },
        'a link for connecting an account was opened by another person',
      )
      return otherPersonPage(visit.requestId, [endFlow(flow.id, origin)])
    }
    return consent({ link: record.link, person: name }, ticket, flow)
  }

  const stored = async (ticket: Ticket, login: UpstreamLogin, flow: Flow, visit: Visit): Promise<Reply> => {
    const { owner, provider } = ticket
    const how = await accounts.connect(owner, provider, login, ticket.id)
    parts.audit({
      type: how === 'connected' ? 'account_connected' : 'account_replaced',
      outcome: 'success',
      requestId: visit.requestId,
      owner,
      provider,
      details: { prompt: ticket.id, route: ticket.route, scopes: login.tokens.scopes },
    })
    // Without it the connection works, and is missing on the page that lists connections.
    await parts.persons.note(ticket.match, owner).catch((error: unknown) => {
      log.warn({ provider, reason: asFailure(storeFailure(error)).code }, 'noting the person of a connection failed')
    })
    log.info({ provider, prompt: ticket.id, request: visit.requestId }, 'account connected')
    const { preferred_username: userName, login: loginName, email, name } = login.claims
    const account = [userName, loginName, email, name].find((one) => typeof one === 'string' && one !== '')
    return completedPage(label(provider), typeof account === 'string' ? account : undefined, [endFlow(flow.id, origin)])
  }

  const failed = (error: unknown, flow: Flow, visit: Visit, provider: string, ticket: Ticket | undefined): Reply => {
    const failure = asFailure(storeFailure(error))
    refuse(failure.code === 'login_refused' ? 'canceled' : 'failed', visit, ticket)
    const { code: reason, detail } = failure
    log.warn({ reason, detail, provider, request: visit.requestId }, 'connecting an account failed')
    return failurePage(failure, visit.requestId, [endFlow(flow.id, origin)])
  }

  const returned = async (text: string, visit: Visit): Promise<Reply> => {
    const query = new URLSearchParams(text)
    const came = await legs.take(query, visit.cookies, [origin])
    if (came === undefined) {
      refuse('other_browser', visit)
      return lostPage(visit.requestId)
    }
    const { flow, leg, record } = came
    try {
      if (record.step !== 'provider') return await proven(record, leg, query, flow, visit)
      const upstream = upstreams.get(record.at)
      if (upstream === undefined || record.ticket === undefined)
        throw new Failure('config_error', { detail: 'a connection provider is no longer configured' })
      const login = await upstream.finish(leg, query)
      return await stored(record.ticket, login, flow, visit)
    } catch (error) {
      return failed(error, flow, visit, record.at, record.ticket)
    }
  }

  /** The form of the consent page. */
  const submit = async (form: URLSearchParams, visit: Visit): Promise<Reply> => {
    const decision = form.get('decision')
    if (decision !== 'continue' && decision !== 'cancel')
      throw new Failure('bad_request', { detail: 'consent form without a decision' })
    const [flowId = '', token = ''] = (form.get('confirm') ?? '').split('.')
    const flow = flowOf(flowId, visit.cookies, origin)
    const record = flow && (await pending.take<PendingConsent>('connect-consent', token, flow))
    if (flow === undefined || record === undefined || clock.now() >= record.endsAtMs) {
      refuse('other_browser', visit)
      return lostPage(visit.requestId)
    }
    const { link } = record
    if (decision === 'cancel') {
      refuse('canceled', visit, await tickets.consume(link))
      return canceledPage(visit.requestId, [endFlow(flow.id, origin)])
    }
    const ticket = await tickets.peek(link)
    if (ticket === undefined) {
      refuse('unknown', visit)
      return unknownLinkPage(visit.requestId)
    }
    try {
      const key = keys.get(ticket.provider)
      if (key !== undefined) {
        const checked = await key.check(form.get('key') ?? '')
        if ('problem' in checked)
          return await consent(record, ticket, flow, { problem: { ...checked, requestId: visit.requestId } })
        const consumed = await tickets.consume(link)
        return consumed === undefined ? unknownLinkPage(visit.requestId) : await stored(consumed, checked, flow, visit)
      }
      const upstream = upstreams.get(ticket.provider)
      if (upstream === undefined)
        throw new Failure('config_error', { detail: `there is no connection provider ${ticket.provider}` })
      const { scopes } = ticket
      const leg = await legs.prepare(upstream, flow, { redirectUri: callbackUrl, scopes })
      // Consumed only when the browser can be sent on.
      const consumed = await tickets.consume(link)
      if (consumed === undefined) return unknownLinkPage(visit.requestId)
      const endsAtMs = clock.now() + FLOW_MS
      const sent = { step: 'provider', link: '', ticket: consumed, at: ticket.provider, endsAtMs } as const
      return { kind: 'redirect', url: await leg.store(sent) }
    } catch (error) {
      return failed(error, flow, visit, ticket.provider, ticket)
    }
  }

  const isFormPost = ({ oidcConfig, oauth2Config }: ConnectionProvider): boolean =>
    (oidcConfig ?? oauth2Config)?.additionalAuthorizationParams?.['response_mode'] === FORM_POST
  const withForm = { methods: ['GET', 'POST'], bodyLimitBytes: CONSENT_FORM_BYTES, takesForeignForms: true }
  return [
    page(`${base}/connect/*`, ({ path }, visit) => open(path.slice(path.lastIndexOf('/') + 1), visit)),
    page(
      `${base}/connect/callback`,
      (request, visit) => (request.method === 'POST' ? postedBack(readForm(request)) : returned(request.query, visit)),
      [...providers.values()].some(isFormPost) ? withForm : undefined,
    ),
    page(continuePath, (request, visit) => submit(readForm(request), visit), {
      methods: ['POST'],
      bodyLimitBytes: CONSENT_FORM_BYTES,
    }),
  ]
}
