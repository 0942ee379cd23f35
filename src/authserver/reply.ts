import type { LocalRequest } from '../core/index.ts'
import { PAGE_HEADERS } from './pages/layout.ts'

/** What a browser gets: a page, or the way on. */
export type Reply =
  | {
      readonly kind: 'page'
      readonly status: number
      readonly html: string
      readonly setCookies?: readonly string[]
      readonly retryAfterSeconds?: number | undefined
    }
  | { readonly kind: 'redirect'; readonly url: string; readonly setCookies?: readonly string[] }

/** Redirects are never kept, and say to the next server only where the page was, not what was in its address. */
const REDIRECT_HEADERS = { 'cache-control': 'no-store', 'referrer-policy': 'same-origin' }

/** Sends it. A redirect is 303: whatever came, a GET follows (RFC 9110 §15.4.4, RFC 9700 §4.12). */
export function sendReply({ response }: LocalRequest, reply: Reply): void {
  const cookies = reply.setCookies ?? []
  if (cookies.length > 0) response.setHeader('set-cookie', cookies)
  if (reply.kind === 'redirect') {
    response.writeHead(303, { ...REDIRECT_HEADERS, location: reply.url, 'content-length': '0' }).end()
    return
  }
  if (reply.retryAfterSeconds !== undefined) response.setHeader('retry-after', String(reply.retryAfterSeconds))
  const body = Buffer.from(reply.html)
  response.writeHead(reply.status, { ...PAGE_HEADERS, 'content-length': String(body.length) }).end(body)
}

/** A JSON answer that nobody keeps (RFC 6749 §5.1). */
export function sendJson(
  { response }: LocalRequest,
  status: number,
  body: object | undefined,
  headers: Readonly<Record<string, string>> = {},
): void {
  const text = body === undefined ? '' : JSON.stringify(body)
  const type = body === undefined ? {} : { 'content-type': 'application/json' }
  const common = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }
  response
    .writeHead(status, { ...common, ...type, ...headers, 'content-length': String(Buffer.byteLength(text)) })
    .end(text)
}

/** A document that is the same for everybody, ready to send; kept for five minutes. */
export function sendDocument({ response }: LocalRequest, document: Buffer): void {
  response
    .writeHead(200, {
      'content-type': 'application/json',
      'cache-control': 'public, max-age=300',
      'x-content-type-options': 'nosniff',
      'content-length': String(document.length),
    })
    .end(document)
}
