import { randomBytes } from 'node:crypto'
import { Failure, NO_CLAIMS } from '../../core/index.ts'
import { consentPage } from '../pages/consent-page.ts'
import { errorPage } from '../pages/error-page.ts'
import type { Reply } from '../reply.ts'
import type { StoredLogin } from '../tokens/stored-login.ts'
import { subjectOf } from '../tokens/subject.ts'
import { endFlow, type Flow } from './browser.ts'
import type { LoginRequest } from './login-request.ts'
import { answerClient, answerFor, wordsFor } from './outcome.ts'
import { displayNameOf, loginCounter, type LoginParts, type Visit } from './parts.ts'
import type { PersonSteps } from './person-logins.ts'
import type { PendingLogin } from './pending.ts'
import { shortHash } from './stored-consents.ts'

/** Completes a login. */
export interface Conclude {
  /**
   * All upstreams were visited: issues the code, or asks for consent again when the stored consent was given by
   * another user (authserver.md §4.1).
   */
  finish(login: PendingLogin, flow: Flow, visit: Visit): Promise<Reply>
  /** Issues the code; consent was given. */
  issue(login: PendingLogin, visit: Visit): Promise<Reply>
  /** Ends the login with an error page, which returns the error to the client. */
  fail(request: LoginRequest, flowId: string, failure: Failure, visit: Visit): Reply
  /** The user canceled. */
  cancel(request: LoginRequest, flowId: string, error: Parameters<typeof answerClient>[1]): Reply
}

/** When the user authenticated at the provider (OpenID Connect Core §2), possibly long before this login. */
function authenticatedAtMs(login: StoredLogin | undefined): number | undefined {
  const authTime = login?.claims.auth_time
  if (login === undefined || typeof authTime !== 'number' || authTime <= 0) return login?.atMs
  return Math.min(authTime * 1000, login.atMs)
}

export function createConclude(parts: LoginParts, persons: Pick<PersonSteps, 'remember'>): Conclude {
  const { addresses, clock, log, audit, upstreams, pending, consents, codes, clients } = parts
  const count = loginCounter(parts.metrics)
  const firstCallback = (resource: string) => {
    const [link] = addresses.chainOf(resource)
    if (link === undefined) throw new Failure('config_error', { detail: `no upstream for ${resource}` })
    return link.callback
  }

  const subjectFor = ({ logins }: PendingLogin): string => {
    const [first] = logins
    const upstream = upstreams.get(first?.provider ?? '')
    if (first === undefined || upstream === undefined)
      throw new Failure('config_error', { detail: 'the first upstream of a pending login is no longer configured' })
    return subjectOf(upstream.identityProvider, first.subject)
  }

  const issue: Conclude['issue'] = async (login, visit) => {
    const { request, logins, flowId } = login
    const { client, redirectUri, isRedirectGiven, challenge, scope, notGranted, resource } = request
    const { origin } = firstCallback(resource)
    const subject = subjectFor(login)
    const tsid = randomBytes(16).toString('base64url')
    const code = await codes.issue({
      clientId: client.id,
      redirectUri,
      isRedirectGiven,
      challenge,
      scope,
      ...(notGranted === undefined ? {} : { notGranted }),
      resource,
      subject,
      authenticatedAtMs: authenticatedAtMs(logins[0]) ?? clock.now(),
      tsid,
      logins,
    })
    await clients.noteUse(client)
    count('completed')
    log.info({ client: client.id, resource, request: visit.requestId }, 'login completed')
    audit({
      type: 'login',
      outcome: 'success',
      requestId: visit.requestId,
      userId: subject,
      clientId: client.id,
      target: { type: 'resource', name: resource },
      details: { providers: logins.map(({ provider }) => provider) },
    })
    const name = displayNameOf(logins[0]?.claims ?? NO_CLAIMS) ?? logins[0]?.subject ?? subject
    const setCookies = [
      endFlow(flowId, origin),
      await consents.add(request, subject, visit.cookies, origin),
      ...persons.remember({ subject, name }, tsid, origin),
    ]
    return { kind: 'redirect', url: answerClient(request, { code }, addresses.issuer), setCookies }
  }

  return {
    issue,
    async finish(login, flow, visit) {
      const { consent, request, logins } = login
      if (consent === 'given' || consent.rememberedFor === shortHash(subjectFor(login))) return issue(login, visit)
      const token = randomBytes(32).toString('base64url')
      await pending.put(
        'confirm',
        token,
        flow,
        { ...login, consent: 'given' },
        Math.max(1, login.endsAtMs - clock.now()),
      )
      const action = firstCallback(request.resource).continuePath
      const field = { name: 'confirm', value: `${flow.id}.${token}` } as const
      const html = consentPage({
        request,
        next: undefined,
        user: displayNameOf(logins[0]?.claims ?? NO_CLAIMS) ?? 'another user',
        action,
        field,
      })
      return { kind: 'page', status: 200, html }
    },
    fail(request, flowId, failure, { requestId }) {
      count('failed')
      const { code, detail } = failure
      log.warn({ reason: code, detail, client: request.client.id, request: requestId }, 'login failed')
      audit({
        type: 'login',
        outcome: code === 'login_refused' ? 'denied' : 'failure',
        requestId,
        clientId: request.client.id,
        target: { type: 'resource', name: request.resource },
        details: { reason: code },
      })
      const back = {
        name: request.client.name ?? 'the application',
        url: answerClient(request, answerFor(failure), addresses.issuer),
      }
      const setCookies = [endFlow(flowId, firstCallback(request.resource).origin)]
      return {
        kind: 'page',
        status: failure.status,
        html: errorPage({ ...wordsFor(failure), requestId, back }),
        setCookies,
      }
    },
    cancel(request, flowId, error) {
      count('cancelled')
      const setCookies = [endFlow(flowId, firstCallback(request.resource).origin)]
      return { kind: 'redirect', url: answerClient(request, error, addresses.issuer), setCookies }
    },
  }
}
