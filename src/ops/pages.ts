import {
  Failure,
  asFailure,
  causeOf,
  type ClientRequest,
  type EndpointResponse,
  type Clock,
  type Log,
} from '../core/index.ts'
import { checkHostHeader, originFormOf } from '../http/index.ts'
import type { AccessOptions } from './access.ts'
import { readJsonBody } from './body.ts'
import { createPageAccess } from './page-access.ts'

/** A request for a page that passed the guard. */
export interface PageRequest {
  readonly method: string
  /** Path below the pages' path, without query: empty, or starting with `/`. */
  readonly path: string
  readonly query: URLSearchParams
  readonly request: ClientRequest
  /** Aborted when the client disconnects. */
  readonly gone: AbortSignal
}

/** Pages of the admin listener with scripts, data and event streams. */
export interface Pages {
  /** `/inspect`. */
  readonly path: string
  /** Whether a path contains no data of the proxy, so that the login page may load it. */
  isOpen(path: string): boolean
  /** Security headers are added. Throws or rejects with `Failure`. */
  serve(request: PageRequest): EndpointResponse | Promise<EndpointResponse>
  /** The page for users who must log in first. */
  readonly loginPage: () => { readonly headers: Readonly<Record<string, string>>; readonly body: string }
}

export interface PagesOptions {
  readonly pages: Pages
  readonly access: AccessOptions
  readonly clock: Clock
  readonly log: Log
  readonly failureAnswer: (failure: Failure) => EndpointResponse
}

/** No external or inline resources, no framing, no referrer. */
const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
}

/** Creates a function that responds to requests for the pages; undefined for others. Its promise never rejects. */
export function createPageServer(
  options: PagesOptions,
): (request: ClientRequest, gone: AbortSignal) => Promise<EndpointResponse> | undefined {
  const { pages, log } = options
  const access = createPageAccess({ ...options.access, path: pages.path, clock: options.clock })

  const login = async (request: ClientRequest): Promise<string> => {
    access.checkOpen(request)
    const body = await readJsonBody(request)
    const { token } = (body ?? {}) as { token?: unknown }
    if (typeof token !== 'string') throw new Failure('bad_request', { detail: 'a login without a token' })
    return access.login(request, token)
  }

  const serve = async (request: ClientRequest, gone: AbortSignal, target: string): Promise<EndpointResponse> => {
    const queryAt = target.indexOf('?')
    const path = (queryAt === -1 ? target : target.slice(0, queryAt)).slice(pages.path.length)
    const { method } = request
    if (path === '/login' || path === '/logout') {
      if (method !== 'POST') throw new Failure('method_not_allowed')
      if (path === '/logout') access.check(request)
      const cookie = path === '/login' ? await login(request) : access.logout(request)
      return { status: 204, headers: { 'set-cookie': cookie }, body: '' }
    }
    if (pages.isOpen(path)) access.checkOpen(request)
    else if (path === '' || path === '/') {
      try {
        access.check(request)
      } catch (error) {
        if (asFailure(error).code !== 'missing_token') throw error
        const { headers, body } = pages.loginPage()
        return { status: 401, headers: { ...headers, 'www-authenticate': 'Bearer realm="extauth-admin"' }, body }
      }
    } else access.check(request)
    const query = new URLSearchParams(queryAt === -1 ? '' : target.slice(queryAt + 1))
    return pages.serve({ method, path, query, request, gone })
  }

  const failed = (error: unknown): EndpointResponse => {
    const failure = asFailure(error)
    if (failure.status >= 500)
      log.error(
        { code: failure.code, detail: failure.detail, cause: causeOf(failure.cause) },
        'inspector request failed',
      )
    const response = options.failureAnswer(failure)
    return { ...response, headers: { ...response.headers, connection: 'close' } }
  }

  return (request, gone) => {
    let target: string
    try {
      target = originFormOf(request.url, checkHostHeader(request))
    } catch {
      // Malformed: handled by the other endpoints.
      return undefined
    }
    const rest = target.startsWith(pages.path) ? target.slice(pages.path.length) : undefined
    if (rest === undefined || !/^(?:$|[/?])/.test(rest)) return undefined
    return serve(request, gone, target)
      .catch(failed)
      .then((response) => ({ ...response, headers: { ...SECURITY_HEADERS, ...response.headers } }))
  }
}
