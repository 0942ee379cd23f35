import type { Failure } from '../../core/index.ts'
import { withAnswer } from '../clients/redirect-uri.ts'
import { OAuthError } from '../oauth-error.ts'
import { errorPage } from '../pages/error-page.ts'
import type { Page, Reply } from '../reply.ts'
import type { LoginRequest } from './login-request.ts'

/** The response to an authorization request; it always names the issuer (RFC 9207). */
export function answerClient(
  request: Pick<LoginRequest, 'redirectUri' | 'state'>,
  answer: { readonly code: string } | OAuthError,
  issuer: string,
): string {
  const { redirectUri, state } = request
  const members =
    answer instanceof OAuthError
      ? { error: answer.error, error_description: answer.description }
      : { code: answer.code }
  return withAnswer(redirectUri, { ...members, state, iss: issuer })
}

/** The OAuth error for a failure at an upstream (authserver.md §4.4). */
export function answerFor(failure: Failure): OAuthError {
  if (failure.code === 'login_refused')
    return new OAuthError('access_denied', 'the identity provider did not let the user log in')
  if (failure.status === 503)
    return new OAuthError('temporarily_unavailable', 'a service required for the login cannot be reached')
  return new OAuthError('server_error', 'the login could not be completed')
}

const INVALID: ReadonlySet<string> = new Set(['bad_request', 'bad_origin', 'method_not_allowed', 'body_too_large'])

/** Whether the request itself is wrong: a form of a different site, a wrong method, or too much data. */
export const isInvalidPageRequest = ({ code }: Failure): boolean => INVALID.has(code)

/** User-facing text of a failure, by responsible party. */
export function wordsFor(failure: Failure): { readonly title: string; readonly text: string } {
  if (failure.code === 'login_refused')
    return {
      title: 'You were not signed in',
      text: 'The identity provider did not complete the sign-in: it was canceled there, or you are not allowed to use this application.',
    }
  if (failure.code === 'rate_limited')
    return {
      title: 'Too many attempts',
      text: 'Your network sent too many requests. Wait a moment, then start again in the application.',
    }
  if (failure.code === 'headers_too_large')
    return {
      title: 'Request too large',
      text: 'The link and this site’s cookies together exceed the size limit. Delete the cookies of this site, then start again in the application.',
    }
  if (isInvalidPageRequest(failure))
    return {
      title: 'This request can’t be accepted',
      text: 'It was not sent by a page of this site, or is too large. Nothing was changed. Go back to your application and start again.',
    }
  if (failure.status === 503)
    return {
      title: 'Sign-in is unavailable',
      text: 'A service required for sign-in cannot be reached. Try again in a moment.',
    }
  return {
    title: 'Sign-in failed',
    text: 'An error occurred in this service. Its operator can find the cause in the log.',
  }
}

/** Error page for a failure when no client can be notified. */
export function failurePage(failure: Failure, requestId: string): Page {
  return {
    kind: 'page',
    status: failure.status,
    html: errorPage({ ...wordsFor(failure), requestId }),
    retryAfterSeconds: failure.retryAfterSeconds,
  }
}

/**
 * Response for a login that belongs to another browser, is over, or never existed. It reveals and consumes nothing.
 */
export function lostPage(requestId: string): Reply {
  const text =
    'It was started in another browser, was already used, or has expired. Nothing was changed. Go back to your application and start again.'
  return {
    kind: 'page',
    status: 400,
    html: errorPage({ title: 'This sign-in can’t continue here', text, requestId }),
  }
}

/** Error page for a request from an unverified client. */
export function refusalPage(error: OAuthError, requestId: string): Reply {
  const text =
    'The application sent an invalid request, so no response can be returned to it safely. If the application was registered long ago, remove its saved registration and start again.'
  return {
    kind: 'page',
    status: 400,
    html: errorPage({
      title: 'Invalid request from the application',
      text,
      requestId,
      code: `${error.error}: ${error.description}`,
    }),
  }
}
