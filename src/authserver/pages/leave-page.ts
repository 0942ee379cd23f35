import type { LoginRequest } from '../login/login-request.ts'
import { applicationRow } from './application.ts'
import { html } from './html.ts'
import { renderPage } from './layout.ts'

export interface LeavePageParts {
  readonly client: LoginRequest['client']
  /** Where the client receives its response. */
  readonly url: string
  readonly error: { readonly error: string; readonly description: string }
  readonly requestId: string
}

/**
 * The page before a redirect with an error to a client without consent: the host is shown, and only a click leads
 * there (RFC 9700 §4.11.2), because anyone can register a client and send users here.
 */
export function leavePage({ client, url, error, requestId }: LeavePageParts): string {
  const { host, protocol } = new URL(url)
  const place = host === '' ? protocol : host
  const body = html`<h1><bdi>${place}</bdi> sent you here</h1>
    <p>Its request can’t be fulfilled, and you have never let it in from this browser. Nothing was shared with it.</p>
    <dl>${applicationRow(client)}</dl>
    <p><code>${error.error}: ${error.description}</code></p>
    <p>If you don’t know <bdi>${place}</bdi>, close this page.</p>
    <p>
      <a class="button" rel="noreferrer" href="${url}">Go to <bdi>${place}</bdi></a>
    </p>
    <p><small>Request ${requestId}</small></p>`
  return renderPage({ title: 'Leaving this service', body })
}
