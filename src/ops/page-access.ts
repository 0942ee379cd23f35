import { createHash, randomBytes } from 'node:crypto'
import { type ClientRequest, Failure, type Clock } from '../core/index.ts'
import { checkAccess, type AccessOptions } from './access.ts'

/** A header that a page of another origin can't send without a preflight, which nobody here answers (Fetch, CORS-safelisted). */
const PAGE_HEADER = 'x-extauth-inspect'

const COOKIE = 'extauth-inspect'
const SESSION_MS = 8 * 3_600_000
const MAX_SESSIONS = 32
const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD'])

interface Session {
  readonly untilMs: number
  /** Of the token that it was opened with: it ends when the token changes. */
  readonly tokenDigest: string
}

/** Who may use the pages of the admin listener: the guard of its endpoints, as far as a browser can meet it. */
export interface PageAccess {
  /**
   * Lets a request pass, or throws: `bad_origin` for a page of another origin and for a foreign `Host` on a local bind,
   * `missing_token` and `invalid_token` where there is a token, `not_found` where nothing could ever pass.
   */
  check(request: ClientRequest): void
  /** The same for what holds no data and is needed to log in: a missing token does not matter. */
  checkOpen(request: ClientRequest): void
  /** Opens a session for whoever presents the admin token: the value of `Set-Cookie`. Throws `invalid_token`, `not_found`. */
  login(request: ClientRequest, token: string): string
  /** Ends the session of this request: the value of `Set-Cookie`. */
  logout(request: ClientRequest): string
}

/**
 * The bearer of `admin.tokenFile` opens a session, because a browser can't be told to send one: a random id in a cookie that
 * scripts can't read, that goes to these pages only and never along with a request that another site caused. On a local bind
 * nobody needs one. Whatever changes something must come from a page of this origin and say so in a header of its own.
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
      // Programs say who they are in each request; no page can make a browser do so.
      if (request.headers.authorization !== undefined) return checkAccess(withoutPage(request), options)
      checkOpen(request)
      if (!isLocalBind && current(request) === undefined) throw new Failure('missing_token', { challenge: {} })
      if (!SAFE.has(request.method) && request.headers[PAGE_HEADER] === undefined)
        throw new Failure('bad_origin', { detail: `a change of the inspector without ${PAGE_HEADER}` })
    },
    login(request, presented) {
      checkOpen(request)
      const expected = token?.()
      if (token === undefined) throw new Failure('not_found')
      if (request.headers[PAGE_HEADER] === undefined) throw new Failure('bad_origin', { detail: 'a login by no page' })
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

/** A memory that is read does not give the ids away, and looking one up takes no hint from how much of it is right. */
const keyOf = (id: string): string => createHash('sha256').update(id).digest('base64url')

/** Another server on this host may have set one of the same name. */
const cookiesOf = (request: ClientRequest): string[] =>
  (request.headers.cookie ?? '')
    .split(';', 64)
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${COOKIE}=`))
    .map((pair) => pair.slice(COOKIE.length + 1))

/** Browsers say which page causes a request: ours, or nobody's (an address that was typed). */
function checkSameOrigin(request: ClientRequest): void {
  const site = request.headers['sec-fetch-site']
  const { origin, host } = request.headers
  const isOurs = origin === undefined || (host !== undefined && URL.parse(origin)?.host === host.toLowerCase())
  if (!isOurs || (site !== undefined && site !== 'none' && site !== 'same-origin'))
    throw new Failure('bad_origin', { detail: 'the inspector asked for by a page of another origin' })
}

/** The request for a guard that takes no page at all, after its page was found to be ours. */
function withoutPage(request: ClientRequest): Pick<ClientRequest, 'headers' | 'headersDistinct'> {
  checkSameOrigin(request)
  const { origin: _origin, 'sec-fetch-site': _site, ...headers } = request.headers
  return { headers, headersDistinct: request.headersDistinct }
}
