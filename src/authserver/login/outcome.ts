import type { Failure } from '../../core/index.ts'
import { withAnswer } from '../clients/redirect-uri.ts'
import { OAuthError } from '../oauth-error.ts'
import { errorPage } from '../pages/error-page.ts'
import type { Reply } from '../reply.ts'
import type { LoginRequest } from './login-request.ts'

/** The answer to a client's authorization request; every one names the issuer (RFC 9207). */
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

/** What a failure at an upstream is called to the client (authserver.md §4.4). */
export function answerFor(failure: Failure): OAuthError {
  if (failure.code === 'login_refused')
    return new OAuthError('access_denied', 'the identity provider did not let the user log in')
  if (failure.status === 503)
    return new OAuthError('temporarily_unavailable', 'a service that the login needs cannot be reached')
  return new OAuthError('server_error', 'the login could not be completed')
}

/** What a human reads of a failure, by whose turn it is. */
export function wordsFor(failure: Failure): { readonly title: string; readonly text: string } {
  if (failure.code === 'login_refused')
    return {
      title: 'You were not signed in',
      text: 'The identity provider did not complete the sign-in: it was cancelled there, or you may not use this application.',
    }
  if (failure.code === 'rate_limited')
    return {
      title: 'Too many attempts',
      text: 'There were too many requests from your address. Wait a moment, then start again in the application.',
    }
  if (failure.code === 'headers_too_large')
    return {
      title: 'Too much came with your browser',
      text: 'The address that you were sent to, together with the cookies of this site, is larger than is taken here. Delete the cookies of this site, then start again in the application.',
    }
  if (failure.status === 503)
    return {
      title: 'Sign-in is not available now',
      text: 'A service that is needed to sign you in cannot be reached. Try again in a moment.',
    }
  return {
    title: 'Sign-in did not work',
    text: 'Something that you can’t change went wrong on the way. Whoever runs this service finds the cause in its log.',
  }
}

/** A page for a failure when no client is known to whom it could be told. */
export function failurePage(failure: Failure, requestId: string): Reply {
  return {
    kind: 'page',
    status: failure.status,
    html: errorPage({ ...wordsFor(failure), requestId }),
    retryAfterSeconds: failure.retryAfterSeconds,
  }
}

/** What a login that is not this browser's, is over or was never there is answered with: it says nothing and spends nothing. */
export function lostPage(requestId: string): Reply {
  const text =
    'It was started in another browser, was used before, or took too long. Nothing was changed. Go back to your application and start again.'
  return {
    kind: 'page',
    status: 400,
    html: errorPage({ title: 'This sign-in can’t be continued here', text, requestId }),
  }
}

/** A request that can't be answered to its client, because nobody knows whether that is who it says. */
export function refusalPage(error: OAuthError, requestId: string): Reply {
  const text =
    'The application sent a request that can’t be answered safely. If it was registered long ago, remove its saved registration and start again.'
  return {
    kind: 'page',
    status: 400,
    html: errorPage({
      title: 'The application can’t be let in',
      text,
      requestId,
      code: `${error.error}: ${error.description}`,
    }),
  }
}
