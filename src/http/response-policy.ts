import { connectionNames, HOP_BY_HOP } from './hop-by-hop.ts'

/** Parsed headers: lower-case names, repeated ones as arrays. */
export type ParsedHeaders = Readonly<Record<string, string | readonly string[] | undefined>>

/** The forwarded headers of a backend, and those that the forwarder decides on. */
export interface ResponseHead {
  /** Flat list (name, value, …), lower-case names. */
  readonly headers: string[]
  /** `Location`, not in `headers`: see `rewriteLocation`. */
  readonly location: string | undefined
  /** `Mcp-Session-Id`, not in `headers`: it is bound to the caller (decisions §7, Sessions). */
  readonly sessionId: string | undefined
  /** It is an event stream. */
  readonly isEvents: boolean
}

/** Never forwarded, each with its reason (decisions §7, Responses). */
const DROPPED: ReadonlySet<string> = new Set([
  // Hop-by-hop only.
  ...HOP_BY_HOP,
  // Sessions between backend and proxy are private; one caller's cookie must not reach another.
  'set-cookie',
  'set-cookie2',
  // Concerns the credential that the proxy sent.
  'www-authenticate',
  'authentication-info',
  'proxy-authentication-info',
  // Would let clients bypass the proxy.
  'alt-svc',
  // The proxy adds its own.
  'x-request-id',
])

/**
 * Returns a function that filters a backend's headers for the client. Dropped: hop-by-hop headers and those named in
 * `Connection`, cookies, challenges, `Alt-Svc`, the backend's CORS headers and request id; `Content-Length` for a
 * status without a body (1xx, 204: RFC 9110 §8.6), and of event streams, to which the proxy may add comments; each
 * line whose value contains one of `secrets`, texts of the credential that the backend received (decisions §7). Event
 * streams get `X-Accel-Buffering: no` unless the backend sets it. The function is stateless.
 */
export function createResponsePolicy(): (
  headers: ParsedHeaders,
  status: number,
  secrets: readonly string[],
) => ResponseHead {
  return (parsed, status, secrets) => {
    const isEvents = isEventStream(first(parsed['content-type']))
    const hasLength = status >= 200 && status !== 204 && !isEvents
    const headers: string[] = []
    const connection = parsed['connection']
    const named = connection === undefined ? undefined : connectionNames(joined(connection), undefined)
    for (const name in parsed) {
      const value = parsed[name]
      if (value === undefined || DROPPED.has(name) || name.startsWith('access-control-')) continue
      if (name === 'location' || name === 'mcp-session-id' || named?.has(name) === true) continue
      if (!hasLength && name === 'content-length') continue
      if (typeof value !== 'string') {
        for (const line of value) if (!holdsOne(line, secrets)) headers.push(name, line)
      } else if (!holdsOne(value, secrets)) headers.push(name, value)
    }
    // Keeps proxies in front from buffering an event stream.
    if (isEvents && parsed['x-accel-buffering'] === undefined) headers.push('x-accel-buffering', 'no')
    return {
      headers,
      location: without(first(parsed['location']), secrets),
      sessionId: without(first(parsed['mcp-session-id']), secrets),
      isEvents,
    }
  }
}

/** Why a header of a backend's response is dropped. */
export type ResponseDropRule =
  /** Hop-by-hop, or named in `Connection`; or a length that does not apply to the client. */
  | 'hop_by_hop'
  /** Belongs to a session between backend and proxy. */
  | 'cookie'
  /** Concerns the credential that the proxy sent. */
  | 'about_our_credential'
  /** Would let clients bypass the proxy, or is set by the proxy itself. */
  | 'said_by_us'
  /** Contains the credential of the request. */
  | 'credential_inside'

/** Why a header (lower-case name) of the backend is missing in the response to the client. */
export function whyDropped(name: string): ResponseDropRule {
  if (HOP_BY_HOP.includes(name) || name === 'content-length') return 'hop_by_hop'
  if (name.startsWith('set-cookie')) return 'cookie'
  if (name === 'www-authenticate' || name.endsWith('authentication-info')) return 'about_our_credential'
  return DROPPED.has(name) || name.startsWith('access-control-') ? 'said_by_us' : 'credential_inside'
}

/** A shorter credential would match by chance; then only the whole value counts. */
const MIN_LENGTH_WITHIN = 8

/** Whether a value of a response contains one of these texts. */
export function holdsOne(value: string, secrets: readonly string[]): boolean {
  for (const secret of secrets) {
    if (value.length < secret.length) continue
    if (secret.length < MIN_LENGTH_WITHIN ? value === secret : value.includes(secret)) return true
  }
  return false
}

const without = (value: string | undefined, secrets: readonly string[]): string | undefined =>
  value === undefined || holdsOne(value, secrets) ? undefined : value

/** True for `text/event-stream` with or without parameters. */
export function isEventStream(contentType: string | undefined): boolean {
  return contentType !== undefined && /^\s*text\/event-stream\s*(?:;|$)/i.test(contentType)
}

/** True for `application/json` in UTF-8, with no other parameter. */
export const isUtf8Json = (contentType: string): boolean =>
  /^application\/json[\t ]*(?:;[\t ]*charset="?utf-8"?[\t ]*)?$/i.test(contentType)

const joined = (value: string | readonly string[]): string => (typeof value === 'string' ? value : value.join(','))

const first = (value: string | readonly string[] | undefined): string | undefined =>
  typeof value === 'string' || value === undefined ? value : value[0]
