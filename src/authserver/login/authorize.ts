import { Failure } from '../../core/index.ts'
import { OAuthError } from '../oauth-error.ts'
import { redirectKind } from '../clients/redirect-uri.ts'
import { leavePage } from '../pages/leave-page.ts'
import type { Reply } from '../reply.ts'
import type { ConsentStep } from './consent.ts'
import { validateRequest } from './login-request.ts'
import { answerClient, refusalPage } from './outcome.ts'
import type { LoginParts, Visit } from './parts.ts'
import type { Destination } from './stored-consents.ts'

/** The authorization endpoint (RFC 6749 §3.1). Throws `Failure` for errors that are not the request's. */
export type Authorize = (query: string, visit: Visit) => Promise<Reply>

export function createAuthorize(parts: LoginParts, consent: ConsentStep): Authorize {
  const { addresses, tickets, consents, log } = parts
  const ownOrigin = new URL(addresses.authorizeUrl).origin

  /**
   * Returns an error to the client. Before any consent, a page asks first: otherwise anyone could register a client
   * and use this server as an open redirector (RFC 9700 §4.11.2). A program on this device gets its response
   * directly.
   */
  const reject = async (
    to: Destination & { readonly state: string | undefined },
    error: OAuthError,
    visit: Visit,
  ): Promise<Reply> => {
    const url = answerClient(to, error, addresses.issuer)
    const isExpected =
      redirectKind(to.redirectUri) === 'loopback' || (await consents.knows(to, visit.cookies, ownOrigin))
    if (isExpected) return { kind: 'redirect', url }
    return { kind: 'page', status: 400, html: leavePage({ client: to.client, url, error, requestId: visit.requestId }) }
  }

  return async (query, visit) => {
    const validated = await validateRequest(query, parts)
    if (validated.kind !== 'login') {
      const { error, description } = validated.error
      log.info({ error, description, request: visit.requestId }, 'authorization request refused')
      return validated.kind === 'page'
        ? refusalPage(validated.error, visit.requestId)
        : reject(validated, validated.error, visit)
    }
    const { request, isSilent } = validated
    const [link] = addresses.chainOf(request.resource)
    if (link === undefined) throw new Failure('config_error', { detail: `no upstream for ${request.resource}` })
    const { callback } = link
    if (isSilent) {
      const isKnown = (await consents.find(request, visit.cookies, callback.origin)) !== undefined
      // No session exists that could answer without the user.
      const error = new OAuthError(isKnown ? 'login_required' : 'consent_required', 'user interaction is required')
      return reject(request, error, visit)
    }
    if (callback.origin === ownOrigin) return consent.present(request, callback, visit)
    // The cookie must be on the upstream's redirect origin.
    const ticket = tickets.write('handover', request)
    return { kind: 'redirect', url: `${callback.continueUrl}?${new URLSearchParams({ ticket }).toString()}` }
  }
}
