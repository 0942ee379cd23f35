import type { EndpointResponse, FailureContent } from '../core/index.ts'
import { PAGE_HEADERS } from './pages/layout.ts'

export interface Page {
  readonly kind: 'page'
  readonly status: number
  readonly html: string
  readonly setCookies?: readonly string[]
  readonly retryAfterSeconds?: number | undefined
}

/** The response to a browser: a page or a redirect. */
export type Reply = Page | { readonly kind: 'redirect'; readonly url: string; readonly setCookies?: readonly string[] }

/** Redirects are not cached, and send the next server only the origin as referrer. */
const REDIRECT_HEADERS = { 'cache-control': 'no-store', 'referrer-policy': 'same-origin' }

/** A redirect is 303: whatever came, a GET follows (RFC 9110 §15.4.4, RFC 9700 §4.12). */
export function responseOf(reply: Reply): EndpointResponse {
  const cookies = reply.setCookies === undefined ? undefined : { 'set-cookie': reply.setCookies }
  if (reply.kind === 'redirect')
    return { status: 303, headers: { ...cookies, ...REDIRECT_HEADERS, location: reply.url }, body: '' }
  const { retryAfterSeconds, status, html } = reply
  const retryAfter = retryAfterSeconds === undefined ? undefined : { 'retry-after': String(retryAfterSeconds) }
  return { status, headers: { ...cookies, ...retryAfter, ...PAGE_HEADERS }, body: html }
}

/** A page in place of the listener's own response to a failure. */
export const contentOf = ({ html }: Page): FailureContent => ({ headers: PAGE_HEADERS, body: html })

/** A JSON response with `Cache-Control: no-store` (RFC 6749 §5.1). */
export function jsonResponse(
  status: number,
  body: object | undefined,
  headers: Readonly<Record<string, string>> = {},
): EndpointResponse {
  const type = body === undefined ? undefined : { 'content-type': 'application/json' }
  const common = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }
  return {
    status,
    headers: { ...common, ...type, ...headers },
    body: body === undefined ? '' : JSON.stringify(body),
  }
}

/** A public document, cached for five minutes. */
export const documentResponse = (body: Buffer): EndpointResponse => ({
  status: 200,
  headers: {
    'content-type': 'application/json',
    'cache-control': 'public, max-age=300',
    'x-content-type-options': 'nosniff',
  },
  body,
})
