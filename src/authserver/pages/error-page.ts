import { html, NOTHING } from './html.ts'
import { renderPage } from './layout.ts'

export interface ErrorPageParts {
  /** What happened, as a heading. */
  readonly title: string
  /** What it means and what to do, in our words. */
  readonly text: string
  /** For whoever looks at the log. */
  readonly requestId: string
  /** The error in OAuth's words, for the developer of a client. */
  readonly code?: string | undefined
  /** The client that gets to know of it, and how. */
  readonly back?: { readonly name: string; readonly url: string } | undefined
}

/** Long enough to read two sentences; the client waits for its answer meanwhile. */
const GOES_ON_AFTER_SECONDS = 8

/** A page for the human who can't go on (authserver.md §4.4). Nothing in it is from an upstream. */
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
