import { createHash } from 'node:crypto'
import { asFailure, type EpochMs, Failure } from '../../core/index.ts'
import { readCallback } from '../../oauth/index.ts'
import { type Seal, StoreError } from '../../storage/index.ts'
import type { Callback, ChainLink } from '../addresses.ts'
import { LOGIN_MS } from '../lifespans.ts'
import type { Reply } from '../reply.ts'
import { storeFailure } from '../store-failure.ts'
import { subjectOf } from '../tokens/subject.ts'
import { beginFlow, cookieName, endFlow, setCookie } from './browser.ts'
import { answerClient, answerFor, lostPage } from './outcome.ts'
import { displayNameOf, loginCounter, type LoginParts, type Visit } from './parts.ts'
import { createUpstreamLegs } from './upstream-legs.ts'

/** A person who logged in at this server. */
export interface Person {
  /** `sub` of the server's tokens. */
  readonly subject: string
  /** Name to show. */
  readonly name: string
}

/** Where a login started, and where it returns to. */
export interface PersonRequest {
  /** Bound to the browser, single use; compared by the page that the browser returns to. */
  readonly state: string
  readonly redirectUri: string
  /** Only this person's earlier login in the browser saves a new one; undefined: anyone's does. */
  readonly subject?: string | undefined
}

/** Logins that prove who is at the browser to pages of this program; no client gets a token (connections.md §3.1). */
export interface PersonLogins {
  /** The URL at which the browser proves it. */
  authorizationUrl(request: PersonRequest): URL
  /** Reads the parameters with which the browser returned. Throws the failures of `Upstream.finish`. */
  finish(request: Pick<PersonRequest, 'state'>, callback: URLSearchParams): Promise<Person>
}

/** The pages of these logins, and their cookie. */
export interface PersonSteps extends PersonLogins {
  /** The browser arrives from `authorizationUrl`; `text` is the value of the parameter `person`. */
  begin(text: string, visit: Visit): Promise<Reply>
  /** The browser returns from the upstream; undefined if no such login is pending. */
  handleCallback(query: URLSearchParams, callbacks: readonly Callback[], visit: Visit): Promise<Reply | undefined>
  /** `Set-Cookie` after a login of a client, if this server remembers persons: the browser need not log in again. */
  remember(person: Person, tsid: string, origin: string): readonly string[]
}

/** Parameter of the continue page. */
export const PERSON_PARAMETER = 'person'
/** Longest time that a browser stays logged in; ends with the session before. */
const REMEMBERED_MS = 8 * 3_600_000
/** Time from the redirect to the page that reads it. */
const PROOF_MS = 60_000
const MOST_TEXT = 8 * 1024

interface Remembered extends Person {
  readonly tsid: string
  readonly endsAtMs: EpochMs
}

interface Proof extends Person {
  readonly state: string
  readonly endsAtMs: EpochMs
}

interface Asked extends PersonRequest {
  readonly endsAtMs: EpochMs
}

interface PendingPerson {
  readonly asked: Asked
  readonly provider: string
  readonly endsAtMs: EpochMs
}

export function createPersonLogins(parts: LoginParts, seal: Seal, remembers: boolean): PersonSteps {
  const { addresses, clock, log, audit, upstreams, isEnded } = parts
  const legs = createUpstreamLegs<PendingPerson>('person', parts.pending, clock)
  const { issuer } = addresses
  const count = loginCounter(parts.metrics)
  // Servers on one host use separate cookies.
  const cookie = `extauth-person-${createHash('sha256').update(issuer).digest('hex').slice(0, 8)}`

  const write = (purpose: string, value: object): string =>
    seal.seal(`person:${purpose}`, Buffer.from(JSON.stringify(value))).toString('base64url')
  /** Undefined for anything but a value that was sealed for this purpose and has not expired. */
  const read = async <T extends { readonly endsAtMs: EpochMs }>(purpose: string, text: string) => {
    if (text.length > MOST_TEXT || !/^[A-Za-z0-9_-]+$/.test(text)) return undefined
    const opened = await seal.open(`person:${purpose}`, Buffer.from(text, 'base64url')).catch((error: unknown) => {
      if (error instanceof StoreError) return undefined
      throw error
    })
    if (opened === undefined) return undefined
    const value = JSON.parse(opened.plain.toString('utf8')) as T
    return clock.now() < value.endsAtMs ? value : undefined
  }

  const linkFor = ({ redirectUri }: PersonRequest): ChainLink => {
    const link = addresses.identityLink(new URL(redirectUri).origin)
    if (link === undefined) throw new Failure('config_error', { detail: `no route uses ${issuer}` })
    return link
  }

  /** The login that this browser has. */
  const known = async ({ subject }: PersonRequest, origin: string, visit: Visit): Promise<Person | undefined> => {
    const value = visit.cookies.get(cookieName(cookie, origin))
    const found = value === undefined ? undefined : await read<Remembered>('cookie', value)
    if (found === undefined || isEnded(found.tsid)) return undefined
    return subject === undefined || found.subject === subject ? found : undefined
  }

  const proven = ({ subject, name }: Person, { state, redirectUri }: PersonRequest): string => {
    const proof: Proof = { subject, name, state, endsAtMs: clock.now() + PROOF_MS }
    return answerClient({ redirectUri, state }, { code: write('proof', proof) }, issuer)
  }

  const refused = (error: unknown, asked: PersonRequest, { requestId }: Visit): string => {
    const failure = asFailure(storeFailure(error))
    const { code: reason, detail } = failure
    count('failed')
    log.warn({ reason, detail, request: requestId }, 'login failed')
    return answerClient(asked, answerFor(failure), issuer)
  }

  return {
    authorizationUrl(request) {
      const asked: Asked = { ...request, endsAtMs: clock.now() + LOGIN_MS }
      const url = new URL(linkFor(request).callback.continueUrl)
      url.searchParams.set(PERSON_PARAMETER, write('request', asked))
      return url
    },
    async finish({ state }, callback) {
      const proof = await read<Proof>('proof', readCallback(callback, { issuer, announcesIss: true }))
      if (proof?.state !== state)
        throw new Failure('identity_provider_error', { detail: 'the proof of a login is for another one, or too old' })
      return proof
    },
    async begin(text, visit) {
      const asked = await read<Asked>('request', text)
      if (asked === undefined) return lostPage(visit.requestId)
      const { provider, callback } = linkFor(asked)
      const person = await known(asked, callback.origin, visit)
      if (person !== undefined) return { kind: 'redirect', url: proven(person, asked) }
      const { flow, setCookies } = beginFlow(visit.cookies, callback.origin, clock.now())
      try {
        const upstream = upstreams.get(provider)
        if (upstream === undefined) throw new Failure('config_error', { detail: `there is no upstream ${provider}` })
        const leg = await legs.prepare(upstream, flow, { redirectUri: callback.url })
        const { endsAtMs } = asked
        return { kind: 'redirect', url: await leg.store({ asked, provider, endsAtMs }), setCookies }
      } catch (error) {
        return { kind: 'redirect', url: refused(error, asked, visit) }
      }
    },
    async handleCallback(query, callbacks, visit) {
      const origins = callbacks.map(({ origin }) => origin)
      const returned = await legs.take(query, visit.cookies, origins)
      if (returned === undefined) return undefined
      const { flow, leg, record } = returned
      const { asked, provider } = record
      const setCookies = [endFlow(flow.id, new URL(leg.redirectUri).origin)]
      try {
        const upstream = upstreams.get(provider)
        // A response at the callback of another upstream: mix-up (RFC 9700 §4.4).
        if (upstream === undefined || callbacks.every(({ url }) => url !== leg.redirectUri))
          throw new Failure('identity_provider_error', { detail: 'the response arrived at another callback' })
        const { subject: user, claims } = await upstream.finish(leg, query)
        const subject = subjectOf(upstream.identityProvider, user)
        count('completed')
        audit({
          type: 'login',
          outcome: 'success',
          requestId: visit.requestId,
          userId: subject,
          target: { type: 'page', name: asked.redirectUri },
          details: { providers: [provider] },
        })
        return { kind: 'redirect', url: proven({ subject, name: displayNameOf(claims) ?? user }, asked), setCookies }
      } catch (error) {
        return { kind: 'redirect', url: refused(error, asked, visit), setCookies }
      }
    },
    remember(person, tsid, origin) {
      if (!remembers) return []
      const value: Remembered = { ...person, tsid, endsAtMs: clock.now() + REMEMBERED_MS }
      return [setCookie(cookie, write('cookie', value), origin, REMEMBERED_MS)]
    },
  }
}
