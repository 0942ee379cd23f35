import { createHash, randomBytes } from 'node:crypto'
import { type ClientRequest, type Clock, type EpochMs, Failure } from '../core/index.ts'
import { checkAccess, type AccessOptions } from './access.ts'

/**
 * A header that a page of a different origin can send only after a preflight, which the listener rejects (Fetch,
 * CORS-safelisted).
 */
const PAGE_HEADER = 'x-extauth-inspect'

const COOKIE = 'extauth-inspect'
const SESSION_MS = 8 * 3_600_000
const MAX_SESSIONS = 32
const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD'])

interface Session {
  readonly untilMs: EpochMs
  /** Digest of the token that opened the session: the session ends when the token changes. */
  readonly tokenDigest: string
}

/** Access control of the admin listener's pages: the guard of its endpoints, for browsers. */
export interface PageAccess {
  /**
   * Throws `bad_origin` for a page of a different origin and for a foreign `Host` on a local bind; `missing_token` and
   * `invalid_token` if a token is configured; `not_found` if no request can be allowed.
   */
  check(request: ClientRequest): void
  /** The same for resources of the login page, without a token. */
  checkOpen(request: ClientRequest): void
  /**
   * Opens a session with the admin token and returns the value of `Set-Cookie`. Throws `invalid_token`, `not_found`.
   */
  login(request: ClientRequest, token: string): string
  /** Ends the session and returns the value of `Set-Cookie`. */
  logout(request: ClientRequest): string
}

/**
 * Creates the access control. The admin token opens a session, because browsers cannot be made to send one: a random
 * ID in an HttpOnly, SameSite cookie for these pages. A local bind needs no session. Changes must come from a page of
 * this origin, with a custom header.
 */
export function createPageAccess(
  options: AccessOptions & { readonly path: string; readonly clock: Clock },
): PageAccess {
  const { isLocalBind, token, clock, path } = options
  const sessions = new Map<string, Session>()

  const current = (request: ClientRequest): string | undefined => {
    for (const id of cookiesOf(request)) {
      const key = keyOf(id)
      const session = sessions.get(key)
      if (session === undefined) continue
      if (session.untilMs > clock.now() && session.tokenDigest === token?.()?.digest()) return key
      sessions.delete(key)
    }
    return undefined
  }

  const checkOpen = (request: ClientRequest): void => {
    checkSameOrigin(request)
    if (isLocalBind) checkAccess(withoutPage(request), { isLocalBind })
    else if (token === undefined) throw new Failure('not_found')
  }

  return {
    checkOpen,
    check(request) {
      // Programs authenticate each request; a page cannot make a browser do so.
      if (request.headers.authorization !== undefined) return checkAccess(withoutPage(request), options)
      checkOpen(request)
      if (!isLocalBind && current(request) === undefined) throw new Failure('missing_token', { challenge: {} })
      if (!SAFE.has(request.method) && request.headers[PAGE_HEADER] === undefined)
        throw new Failure('bad_origin', { detail: `a change in the inspector without the header ${PAGE_HEADER}` })
    },
    login(request, presented) {
      checkOpen(request)
      const expected = token?.()
      if (token === undefined) throw new Failure('not_found')
      if (request.headers[PAGE_HEADER] === undefined)
        throw new Failure('bad_origin', { detail: 'a login that is not from the page' })
      if (expected === undefined || !expected.equals(presented))
        throw new Failure('invalid_token', { detail: 'admin token', challenge: { error: 'invalid_token' } })
      const id = randomBytes(32).toString('base64url')
      const oldest = sessions.size < MAX_SESSIONS ? undefined : sessions.keys().next().value
      if (oldest !== undefined) sessions.delete(oldest)
      sessions.set(keyOf(id), { untilMs: clock.now() + SESSION_MS, tokenDigest: expected.digest() })
      return cookie(path, id, SESSION_MS / 1000)
    },
    logout(request) {
      const key = current(request)
      if (key !== undefined) sessions.delete(key)
      return cookie(path, '', 0)
    },
  }
}

const cookie = (path: string, value: string, maxAge: number): string =>
  `${COOKIE}=${value}; Path=${path}; Max-Age=${maxAge}; HttpOnly; SameSite=Strict`

/** Hashed, so that memory does not reveal IDs and lookups do not leak timing. */
const keyOf = (id: string): string => createHash('sha256').update(id).digest('base64url')

/** A different server on this host may have set a cookie of the same name. */
const cookiesOf = (request: ClientRequest): string[] =>
  (request.headers.cookie ?? '')
    .split(';', 64)
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${COOKIE}=`))
    .map((pair) => pair.slice(COOKIE.length + 1))

/** Browsers send the origin of a request: a page of this origin, or none (a typed URL). */
function checkSameOrigin(request: ClientRequest): void {
  const site = request.headers['sec-fetch-site']
  const { origin, host } = request.headers
  const isOurs = origin === undefined || (host !== undefined && URL.parse(origin)?.host === host.toLowerCase())
  if (!isOurs || (site !== undefined && site !== 'none' && site !== 'same-origin'))
    throw new Failure('bad_origin', { detail: 'the inspector requested by a page of a different origin' })
}

/** The request without its origin headers, which were checked, for the guard that rejects pages. */
function withoutPage(request: ClientRequest): Pick<ClientRequest, 'headers' | 'headersDistinct'> {
  checkSameOrigin(request)
  const { origin: _origin, 'sec-fetch-site': _site, ...headers } = request.headers
  return { headers, headersDistinct: request.headersDistinct }
}
