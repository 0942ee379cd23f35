import { createHash, timingSafeEqual } from 'node:crypto'
import { asFailure, Failure, type Clock, type LocalHandler, type Log } from '../core/index.ts'
import {
  beginFlow,
  type BrowserEndpoint,
  CONSENT_FORM_BYTES,
  cookieName,
  endFlow,
  type Flow,
  readForm,
  type Reply,
  setCookie,
  storeFailure,
  type UpstreamLegs,
  type Visit,
} from '../authserver/index.ts'
import type { Seal } from '../storage/index.ts'
import type { Accounts, ConnectionInfo } from './accounts.ts'
import { type Owner, ownerOf } from './owner.ts'
import { connectionsPage, disconnectedText, issuersPage, lostPage, testedText } from './pages.ts'
import type { PersonLogin, Persons } from './persons.ts'
import { FLOW_MS, type PendingRedirect } from './redirects.ts'
import type { Match, Tickets } from './tickets.ts'

export interface ManageParts {
  readonly baseUrl: string
  readonly providers: readonly string[]
  /** Name of the first route that uses a provider. */
  readonly routeOf: (provider: string) => string
  readonly logins: readonly PersonLogin[]
  readonly isSingleUser: boolean
  readonly label: (provider: string) => string
  readonly accounts: Pick<Accounts, 'infos' | 'disconnect' | 'test' | 'isTestable'>
  readonly tickets: Pick<Tickets, 'issue'>
  readonly persons: Persons
  readonly legs: UpstreamLegs<PendingRedirect>
  readonly seal: Seal
  readonly clock: Clock
  readonly log: Log
}

/** A person who logged in to see the own connections; in a sealed cookie. */
interface Visitor {
  readonly issuer: string
  readonly match: Match
  readonly name: string
  readonly endsAtMs: number
}

interface OwnedConnection {
  readonly info: ConnectionInfo
  readonly owner: Owner
}

const COOKIE = 'extauth-connections'
/** Names of the buttons; the value is the provider. */
const ACTIONS = ['disconnect', 'test', 'renew'] as const
const VISIT_MS = 15 * 60_000

/** The page `/connections`, on which people see and end their own connections. */
export interface Manage {
  readonly handlers: readonly LocalHandler[]
  /** The person came back from the own issuer: sets the cookie and shows the page. */
  entered(issuer: string, match: Match, name: string, flow: Flow): Reply
}

export function createManage(parts: ManageParts, page: BrowserEndpoint): Manage {
  const { baseUrl, logins, accounts, persons, legs, seal, clock, log, label } = parts
  const { origin, pathname } = new URL(baseUrl)
  const path = `${pathname.replace(/\/$/, '')}/connections`
  const cookie = cookieName(COOKIE, origin)
  // Forms name the cookie that they were made for, so that another site can't post them.
  const tokenOf = (value: string): string => createHash('sha256').update(value).digest('base64url')

  const visitorOf = async (visit: Visit): Promise<{ visitor: Visitor; token: string } | undefined> => {
    const value = visit.cookies.get(cookie)
    if (value === undefined || !/^[A-Za-z0-9_-]{1,4096}$/.test(value)) return undefined
    const opened = await seal.open(COOKIE, Buffer.from(value, 'base64url')).catch(() => undefined)
    if (opened === undefined) return undefined
    const visitor = JSON.parse(opened.plain.toString('utf8')) as Visitor
    return clock.now() < visitor.endsAtMs ? { visitor, token: tokenOf(value) } : undefined
  }
  const cookieFor = (visitor: Visitor): string =>
    setCookie(COOKIE, seal.seal(COOKIE, Buffer.from(JSON.stringify(visitor))).toString('base64url'), origin, VISIT_MS)

  const ownersOf = async ({ issuer, match }: Visitor): Promise<readonly Owner[]> =>
    parts.isSingleUser ? [ownerOf({ kind: 'anonymous' }, true)] : persons.find(issuer, match)

  const ownedBy = async (visitor: Visitor): Promise<readonly OwnedConnection[]> => {
    const found = (await ownersOf(visitor)).map(async (owner) => {
      const { connections } = await accounts.infos(owner)
      return connections.map((info): OwnedConnection => ({ info, owner }))
    })
    return (await Promise.all(found)).flat()
  }

  const show = async (visitor: Visitor, token: string, done?: string): Promise<Reply> => {
    const connections = (await ownedBy(visitor)).map(({ info }) => ({
      info,
      label: label(info.provider),
      isTestable: !info.isBroken && accounts.isTestable(info.provider),
      // A provider that is not configured any more can only be disconnected.
      isRenewable: parts.providers.includes(info.provider),
    }))
    return connectionsPage({ connections, person: visitor.name, action: path, token, done })
  }

  const logIn = async (login: PersonLogin, visit: Visit): Promise<Reply> => {
    const { flow, setCookies } = beginFlow(visit.cookies, origin, clock.now())
    const leg = await legs.prepare(login.at(undefined), flow, { redirectUri: `${baseUrl}/connect/callback` })
    const endsAtMs = clock.now() + FLOW_MS
    const url = await leg.store({ step: 'manage', link: '', ticket: undefined, at: login.issuer, endsAtMs })
    return { kind: 'redirect', url, setCookies }
  }

  const open = async (query: string, visit: Visit): Promise<Reply> => {
    const known = await visitorOf(visit)
    if (known !== undefined) return show(known.visitor, known.token)
    if (parts.isSingleUser) {
      const visitor: Visitor = {
        issuer: '',
        match: undefined,
        name: 'the local user',
        endsAtMs: clock.now() + VISIT_MS,
      }
      return { kind: 'redirect', url: path, setCookies: [cookieFor(visitor)] }
    }
    const wanted = new URLSearchParams(query).get('issuer')
    const [only] = logins
    const login = logins.length === 1 ? only : logins.find(({ issuer }) => issuer === wanted)
    return login === undefined
      ? issuersPage(
          path,
          logins.map(({ issuer }) => issuer),
        )
      : logIn(login, visit)
  }

  const submit = async (form: URLSearchParams, visit: Visit): Promise<Reply> => {
    const known = await visitorOf(visit)
    const given = Buffer.from(form.get('token') ?? '')
    const own = Buffer.from(known?.token ?? '')
    if (known === undefined || given.length !== own.length || !timingSafeEqual(given, own))
      return lostPage(visit.requestId)
    const { visitor, token } = known
    const [action, ...others] = ACTIONS.filter((name) => form.has(name))
    if (action === undefined || others.length > 0)
      throw new Failure('bad_request', { detail: `the form must have one of ${ACTIONS.join(', ')}` })
    const provider = form.get(action) ?? ''
    const connections = (await ownedBy(visitor)).filter(({ info }) => info.provider === provider)
    const [first] = connections
    if (first === undefined) return show(visitor, token, 'This account was not connected.')
    if (action === 'renew') return renew(first, visitor)
    const done =
      action === 'test'
        ? testedText(label(provider), await tested(first))
        : disconnectedText(label(provider), await disconnect(connections, visit))
    return show(visitor, token, done)
  }

  const disconnect = async (connections: readonly OwnedConnection[], visit: Visit) => {
    const outcomes = connections.map(async ({ owner, info: { provider } }) => {
      const { requestId } = visit
      const ended = await accounts.disconnect(owner, provider, { by: 'person', requestId })
      const revocation = (await ended?.revocation) ?? 'nothing'
      if (ended === undefined) return revocation
      log.info({ provider, revocation, request: requestId }, 'account disconnected by its owner')
      return revocation
    })
    return Promise.all(outcomes)
  }

  const tested = async ({ owner, info: { provider } }: OwnedConnection) => {
    try {
      return await accounts.test(owner, provider)
    } catch (error) {
      const failure = asFailure(storeFailure(error))
      if (failure.code === 'not_connected') return 'rejected'
      if (failure.code === 'store_unavailable') throw failure
      log.info({ provider, reason: failure.code, detail: failure.detail }, 'testing a connection failed')
      return 'unavailable'
    }
  }

  /** A link for the person who is logged in here; the login is repeated there, so that links have one way. */
  const renew = async ({ owner, info: { provider, scopes } }: OwnedConnection, { match }: Visitor) => {
    if (!parts.providers.includes(provider))
      throw new Failure('bad_request', { detail: `there is no connection provider ${provider}` })
    const { text } = await parts.tickets.issue(owner, match, parts.routeOf(provider), {
      provider,
      problem: 'missing',
      scopes,
    })
    return { kind: 'redirect', url: `${baseUrl}/connect/${text}` } as const
  }

  return {
    handlers: [
      page(
        path,
        (request, visit) => (request.method === 'POST' ? submit(readForm(request), visit) : open(request.query, visit)),
        { methods: ['GET', 'POST'], bodyLimitBytes: CONSENT_FORM_BYTES },
      ),
    ],
    entered(issuer, match, name, flow) {
      const visitor: Visitor = { issuer, match, name, endsAtMs: clock.now() + VISIT_MS }
      return { kind: 'redirect', url: path, setCookies: [endFlow(flow.id, origin), cookieFor(visitor)] }
    },
  }
}
