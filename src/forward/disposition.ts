import { type Again, Failure, type Sealed } from '../core/index.ts'
import { type ParsedHeaders, type ResponseHead, rewriteLocation } from '../http/index.ts'
import { judgeHeaders, type Rejection } from './aws-rejection.ts'
import type { ForwardRoute } from './route.ts'

/** What becomes of an answer whose header section is known. */
export type Disposition =
  /** It is the caller's, with this `Location`. */
  | { readonly kind: 'stream'; readonly location: string | undefined }
  /** It is not for the caller: try again. */
  | { readonly kind: 'again'; readonly again: Again }
  | { readonly kind: 'fail'; readonly failure: Failure }
  /** The first bytes of the body decide. */
  | { readonly kind: 'peek'; readonly rejection: Rejection }

const STREAM: Disposition = { kind: 'stream', location: undefined }

const one = (value: string | readonly string[] | undefined): string | undefined =>
  typeof value === 'string' || value === undefined ? value : value[0]

const isReplayable = (sealed: Sealed): boolean => sealed.body.kind !== 'stream'

/** Whether it leads to the host of the backend, by whichever scheme and user. */
const isOwn = (location: string, route: ForwardRoute, sealed: Sealed): boolean =>
  URL.parse(location, route.target.origin + sealed.path)?.host === new URL(route.target.origin).host

/** Path and query of a redirect that stays on the backend's origin; undefined for any other. */
const ownPath = (location: string, route: ForwardRoute, sealed: Sealed): string | undefined => {
  const { origin } = new URL(route.target.origin)
  const url = URL.parse(location, origin + sealed.path)
  if (url === null || url.origin !== origin || url.username !== '' || url.password !== '') return undefined
  return url.pathname + url.search
}

const judgeRedirect = (status: number, location: string, route: ForwardRoute, sealed: Sealed): Disposition => {
  // The method and the body stay the same only with these two (RFC 9110 §15.4.8, §15.4.9).
  if ((status === 307 || status === 308) && !sealed.final && isReplayable(sealed)) {
    const path = ownPath(location, route, sealed)
    if (path !== undefined) return { kind: 'again', again: { reason: 'redirect', status, path } }
  }
  const ours = rewriteLocation(location, route, sealed.path)
  // A caller that followed it would go around the proxy, and its token with it (decisions §7, Responses).
  if (ours === undefined) return { kind: 'fail', failure: new Failure('backend_error', { rule: 'redirect_foreign' }) }
  return { kind: 'stream', location: ours }
}

/**
 * Decides on a final (not 1xx) status and its headers. 401 never reaches a caller: what is wrong is our credential, not
 * theirs (decisions §4). Redirects: own origin or 502 (decisions §7). Everything else is the caller's.
 */
export const judge = (
  status: number,
  headers: ParsedHeaders,
  head: ResponseHead,
  route: ForwardRoute,
  sealed: Sealed,
): Disposition => {
  const { location } = head
  if (status < 300 && location === undefined) return STREAM
  if (status === 401) {
    // Also in the last attempt: what the caller gets then depends on the type, which is not known here.
    return { kind: 'again', again: { reason: 'credential_rejected', status } }
  }
  if (location !== undefined && status >= 300 && status < 400 && status !== 304) {
    return judgeRedirect(status, location, route, sealed)
  }
  const isSigned = sealed.armed.credential.kind === 'aws'
  if (isSigned && !sealed.final && (status === 400 || status === 403)) {
    const rejection = {
      status,
      errorType: one(headers['x-amzn-errortype']),
      date: one(headers['date']),
      coding: one(headers['content-encoding']),
    }
    const again = judgeHeaders(rejection)
    return again === 'peek' ? { kind: 'peek', rejection } : { kind: 'again', again }
  }
  // A `Location` that is no redirect (201): ours where it is under the route, as it is on other origins. For the rest of
  // the backend's own there is no address of ours, and its own is nobody's business.
  if (location === undefined) return STREAM
  const ours = rewriteLocation(location, route, sealed.path)
  if (ours !== undefined || isOwn(location, route, sealed)) return { kind: 'stream', location: ours }
  return { kind: 'stream', location }
}

/**
 * Why an answer can't be forwarded, by its status and headers: a status that is none (RFC 9110 §15), a switch of protocols
 * that nobody asked for, or a transfer coding beside `chunked`, which nobody here would take off again (RFC 9112 §6.1).
 */
export function unusableAnswer(status: number, headers: ParsedHeaders): Failure | undefined {
  if (status < 100 || status > 599) return bad('no status of HTTP')
  if (status === 101) return bad('an upgrade that was not asked for')
  const coding = headers['transfer-encoding']
  if (coding === undefined || coding === 'chunked' || String(coding).toLowerCase() === 'chunked') return undefined
  return bad('a transfer coding other than chunked')
}

const bad = (detail: string): Failure => new Failure('backend_error', { detail })
