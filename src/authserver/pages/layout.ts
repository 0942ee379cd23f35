import { createHash } from 'node:crypto'
import { html, Markup } from './html.ts'

/**
 * The stylesheet of all pages, inlined: system colors and fonts, so that dark mode, zoom and contrast settings work.
 */
const STYLE = `
:root{color-scheme:light dark;--line:#8886;--soft:#8881;--accent:#0b57d0;--on-accent:#fff}
@media(prefers-color-scheme:dark){:root{--accent:#a8c7fa;--on-accent:#062e6f}}
*{box-sizing:border-box}
body{margin:0;padding:1rem;font:1rem/1.5 system-ui,sans-serif;background:Canvas;color:CanvasText;overflow-wrap:anywhere}
main{max-width:34rem;margin:4vh auto;padding:1.25rem;border:1px solid var(--line);border-radius:.75rem}
h1{font-size:1.375rem;line-height:1.75rem;margin:0 0 .75rem;overflow:hidden}
dl{margin:1rem 0}
dt{font-size:.875rem;opacity:.8;margin-top:.75rem}
dd{margin:0;font-weight:600}
dd small{display:block;font-weight:400}
dd .chosen{display:block;max-height:4.5rem;overflow:hidden auto}
ul{margin:0;padding-left:1.25rem}
.note{padding:.5rem .75rem;border-left:.25rem solid var(--accent);background:var(--soft)}
form{display:flex;flex-wrap:wrap;gap:.75rem;margin-top:1.25rem;position:sticky;bottom:0;padding:.5rem 0;background:Canvas}
button,.button{flex:1 1 8rem;min-height:2.75rem;padding:.5rem 1rem;font:inherit;font-weight:600;text-align:center;text-decoration:none;border:1px solid var(--line);border-radius:.5rem;background:transparent;color:inherit;cursor:pointer}
label{display:block;flex:1 1 100%;font-weight:600}
form p{flex:1 1 100%;margin:0}
input[type=password]{width:100%;min-height:2.75rem;padding:.5rem .75rem;font:inherit;border:1px solid var(--line);border-radius:.5rem;background:transparent;color:inherit}
.primary{background:var(--accent);border-color:var(--accent);color:var(--on-accent)}
:focus-visible{outline:.1875rem solid var(--accent);outline-offset:.125rem}
@media(max-width:26rem){body{padding:0}main{margin:0;border:0;border-radius:0}}
@media(forced-colors:active){.primary{border-width:.1875rem}}
`.trim()

// A single string: the CSP hash covers everything between the tags, spaces included.
const STYLE_ELEMENT = new Markup(`<style>${STYLE}</style>`)
const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64')

/**
 * Headers of a page: only its own style is allowed, and no framing. There is no `form-action`: Chromium applies it to
 * each redirect after a form, and the path to the upstream and back to the client consists of such redirects. Pages
 * hold no foreign markup that it could stop.
 */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; base-uri 'none'; frame-ancestors 'none'`,
  'x-frame-options': 'DENY',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'same-origin',
}

export interface PageParts {
  readonly title: string
  readonly body: Markup
  /** Redirects automatically after some seconds. */
  readonly goesOn?: { readonly url: string; readonly afterSeconds: number }
}

/** Renders a complete page without script. */
export function renderPage({ title, body, goesOn }: PageParts): string {
  const refresh =
    goesOn === undefined
      ? new Markup('')
      : html`<meta http-equiv="refresh" content="${String(goesOn.afterSeconds)};url=${goesOn.url}" />`
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="robots" content="noindex" />
        ${refresh}
        <title>${title}</title>
        ${STYLE_ELEMENT}
      </head>
      <body>
        <main>${body}</main>
      </body>
    </html> `.text
}
