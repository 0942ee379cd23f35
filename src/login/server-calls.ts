import * as oauth from 'oauth4webapi'
import { CredentialRefusal, isLoopbackHost, type Outbound, OutboundError } from '../core/index.ts'

/** Statuses whose answers have no body (Fetch standard). */
const EMPTY: ReadonlySet<number> = new Set([204, 205, 304])

/** How `oauth4webapi` sends its requests: through our own client, with its bounds; plain http only to this machine. */
export function callOptions(outbound: Outbound, url: string) {
  return { [oauth.customFetch]: fetchOver(outbound), [oauth.allowInsecureRequests]: isLoopbackUrl(url) }
}

export const isLoopbackUrl = (url: string): boolean => URL.canParse(url) && isLoopbackHost(new URL(url).hostname)

/** True for what may be asked or shown to a browser: https, or plain http on this machine. */
export function isSafeUrl(url: unknown): url is string {
  const parsed = typeof url === 'string' ? URL.parse(url) : null
  if (parsed === null || parsed.username !== '' || parsed.password !== '') return false
  return parsed.protocol === 'https:' || (parsed.protocol === 'http:' && isLoopbackHost(parsed.hostname))
}

function fetchOver(outbound: Outbound) {
  return async (
    url: string,
    options: { method: string; headers: Record<string, string>; body?: string | URLSearchParams | null | undefined },
  ): Promise<Response> => {
    const { body } = options
    const answer = await outbound.request({
      method: options.method === 'POST' ? 'POST' : 'GET',
      url,
      headers: { ...options.headers },
      ...(body === undefined || body === null ? {} : { body: body.toString() }),
    })
    const content = EMPTY.has(answer.status) ? null : new Uint8Array(answer.body)
    return new Response(content, { status: answer.status, headers: answer.headers })
  }
}

/** A login or a refresh failed, in words for the user: `what` continues "The login failed: …". Codes only, no foreign text. */
export function loginRefusal(what: string, error?: unknown): CredentialRefusal {
  const code = error === undefined ? undefined : codeOf(error)
  return new CredentialRefusal('login_failed', `The login failed: ${what}${code === undefined ? '' : ` (${code})`}.`)
}

/** OAuth's own error code, or what kept the request from being answered. */
function codeOf(error: unknown): string | undefined {
  if (error instanceof OutboundError) return error.kind
  const { error: said, code } = Object(error) as { error?: unknown; code?: unknown }
  if (typeof said === 'string' && /^[a-z_]{1,64}$/.test(said)) return said
  return typeof code === 'string' && /^[A-Z_]{1,64}$/.test(code) ? code.toLowerCase() : undefined
}

/** The authorization server says that the grant is worth nothing any more (RFC 6749 §5.2). */
export const isInvalidGrant = (error: unknown): boolean =>
  error instanceof oauth.ResponseBodyError &&
  ['invalid_grant', 'invalid_client', 'unauthorized_client'].includes(error.error)
