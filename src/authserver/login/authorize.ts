import { Failure } from '../../core/index.ts'
import { OAuthError } from '../oauth-error.ts'
import { redirectKind } from '../clients/redirect-uri.ts'
import { leavePage } from '../pages/leave-page.ts'
import type { Reply } from '../reply.ts'
import type { ConsentStep } from './consent.ts'
import { judgeRequest } from './login-request.ts'
import { answerClient, refusalPage } from './outcome.ts'
import type { LoginParts, Visit } from './parts.ts'
import type { Destination } from './remembered.ts'

/** The authorization endpoint (RFC 6749 §3.1). Throws `Failure` for what is no fault of the request. */
export type Authorize = (query: string, visit: Visit) => Promise<Reply>

export function createAuthorize(parts: LoginParts, consent: ConsentStep): Authorize {
  const { addresses, tickets, remembered, log } = parts
  const ownOrigin = new URL(addresses.authorizeUrl).origin

  /**
   * Tells the client, by way of a page where its user has agreed to nothing yet: who registers a client could send people anywhere
   * by a link to us (RFC 9700 §4.11.2). A program on this device is no such place, and waits for its answer.
   */
  const tell = async (
    to: Destination & { readonly state: string | undefined },
    error: OAuthError,
    visit: Visit,
  ): Promise<Reply> => {
    const url = answerClient(to, error, addresses.issuer)
    const isExpected =
      redirectKind(to.redirectUri) === 'loopback' || (await remembered.knows(to, visit.cookies, ownOrigin))
    if (isExpected) return { kind: 'redirect', url }
    return { kind: 'page', status: 400, html: leavePage({ client: to.client, url, error, requestId: visit.requestId }) }
  }

  return async (query, visit) => {
    const judged = await judgeRequest(query, parts)
    if (judged.kind !== 'login') {
      const { error, description } = judged.error
      log.info({ error, description, request: visit.requestId }, 'authorization request refused')
      return judged.kind === 'page' ? refusalPage(judged.error, visit.requestId) : tell(judged, judged.error, visit)
    }
    const { request, isSilent } = judged
    const [link] = addresses.chainOf(request.resource)
    if (link === undefined) throw new Failure('config_error', { detail: `no upstream for ${request.resource}` })
    const { callback } = link
    if (isSilent) {
      const isKnown = (await remembered.find(request, visit.cookies, callback.origin)) !== undefined
      // There is no session of ours that could answer without the user.
      const error = new OAuthError(isKnown ? 'login_required' : 'consent_required', 'the user has to take part')
      return tell(request, error, visit)
    }
    if (callback.origin === ownOrigin) return consent.present(request, callback, visit)
    // The cookie has to be where the upstream sends the browser back to.
    const ticket = tickets.write('handover', request)
    return { kind: 'redirect', url: `${callback.continueUrl}?${new URLSearchParams({ ticket }).toString()}` }
  }
}
