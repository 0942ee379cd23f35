import { html, NOTHING } from './html.ts'
import { renderPage } from './layout.ts'

export interface ErrorPageParts {
  /** The event, as a heading. */
  readonly title: string
  /** Meaning and remedy, without external values. */
  readonly text: string
  /** For finding the log line. */
  readonly requestId: string
  /** The OAuth error code, for client developers. */
  readonly code?: string | undefined
  /** The client to return to with the error. */
  readonly back?: { readonly name: string; readonly url: string } | undefined
}

/** Time to read two sentences; the client waits meanwhile. */
const GOES_ON_AFTER_SECONDS = 8

/** Error page for the user (authserver.md §4.4). Nothing in it comes from an upstream. */
export function errorPage({ title, text, requestId, code, back }: ErrorPageParts): string {
  const body = html`<h1>${title}</h1>
    <p>${text}</p>
    ${code === undefined ? NOTHING : html`<p><code>${code}</code></p>`}
    ${
      back === undefined
        ? NOTHING
        : html`<p>
              <a class="button primary" href="${back.url}">Back to <bdi>${back.name}</bdi></a>
            </p>
            <p><small>You get there by yourself in a few seconds.</small></p>`
    }
    <p><small>Request ${requestId}</small></p>`
  const goesOn = back === undefined ? undefined : { url: back.url, afterSeconds: GOES_ON_AFTER_SECONDS }
  return renderPage({ title, body, ...(goesOn === undefined ? {} : { goesOn }) })
}
