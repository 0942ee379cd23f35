import { redirectKind } from '../clients/redirect-uri.ts'
import type { LoginRequest } from '../login/login-request.ts'
import { applicationRow, shortName } from './application.ts'
import { html, NOTHING, type Markup } from './html.ts'
import { renderPage } from './layout.ts'

export interface ConsentPageParts {
  readonly request: LoginRequest
  /** The next upstream and its host; undefined when the user has already logged in. */
  readonly next: { readonly name: string; readonly host: string } | undefined
  /** The user's display name; only when consent is asked again after the login. */
  readonly user: string | undefined
  /** Path of the form. */
  readonly action: string
  /** The hidden field of the form. */
  readonly field: { readonly name: 'ticket' | 'confirm'; readonly value: string }
}

/** The consent page (authserver.md §4.1). */
export function consentPage({ request, next, user, action, field }: ConsentPageParts): string {
  const title = 'Allow access?'
  const body = html`<h1>Allow ${shortName(request.client)} to use this service as you?</h1>
    ${user === undefined ? NOTHING : html`<p class="note">You are signed in as <bdi>${user}</bdi>.</p>`}
    <dl>
      ${applicationRow(request.client)}
      <dt>Sends you back to</dt>
      <dd><span class="chosen">${destination(request.redirectUri)}</span></dd>
      <dt>Service</dt>
      <dd>${request.resource}</dd>
      ${
        request.scope.length === 0
          ? NOTHING
          : html`<dt>Access</dt>
              <dd>
                <ul>
                  ${request.scope.map((scope) => html`<li>${scope}</li>`)}
                </ul>
              </dd>`
      }
      ${
        next === undefined
          ? NOTHING
          : html`<dt>Next you sign in at</dt>
              <dd>${next.name}<small>${next.host}</small></dd>`
      }
    </dl>
    <p>Go on only if you started this yourself, in that application, just now.</p>
    <form method="post" action="${action}">
      <input type="hidden" name="${field.name}" value="${field.value}" />
      <button class="primary" name="decision" value="continue">Continue</button>
      <button name="decision" value="cancel">Cancel</button>
    </form>`
  return renderPage({ title, body })
}

/** Where the code goes: the full host, or this device. */
function destination(redirectUri: string): Markup {
  const { host, protocol } = new URL(redirectUri)
  switch (redirectKind(redirectUri)) {
    case 'loopback':
      return html`this device<small>a program that listens at ${host}</small>`
    case 'private':
      return html`this device<small>the program that opens ${protocol} links</small>`
    default:
      return html`${host}`
  }
}
