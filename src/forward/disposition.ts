import { type Again, Failure, type Sealed } from '../core/index.ts'
import { type ParsedHeaders, type ResponseHead, rewriteLocation } from '../http/index.ts'
import { judgeHeaders, type Rejection } from './aws-rejection.ts'
import type { ForwardRoute } from './route.ts'

/** What to do with a response, by its headers. */
export type Disposition =
  /** Forward it to the client, with this `Location`. */
  | { readonly kind: 'stream'; readonly location: string | undefined }
  /** Not for the client: retry. */
  | { readonly kind: 'again'; readonly again: Again }
  | { readonly kind: 'fail'; readonly failure: Failure }
  /** The first bytes of the body decide. */
  | { readonly kind: 'peek'; readonly rejection: Rejection }

const STREAM: Disposition = { kind: 'stream', location: undefined }

const one = (value: string | readonly string[] | undefined): string | undefined =>
  typeof value === 'string' || value === undefined ? value : value[0]

const isReplayable = (sealed: Sealed): boolean => sealed.body.kind !== 'stream'

/** Whether it leads to the host of the backend, with any scheme and user. */
const isOwn = (location: string, route: ForwardRoute, sealed: Sealed): boolean =>
  URL.parse(location, route.target.origin + sealed.path)?.host === new URL(route.target.origin).host

/** Path and query of a redirect within the backend's origin; undefined for others. */
const ownPath = (location: string, route: ForwardRoute, sealed: Sealed): string | undefined => {
  const { origin } = new URL(route.target.origin)
  const url = URL.parse(location, origin + sealed.path)
  if (url === null || url.origin !== origin || url.username !== '' || url.password !== '') return undefined
  return url.pathname + url.search
}

const judgeRedirect = (status: number, location: string, route: ForwardRoute, sealed: Sealed): Disposition => {
  // Only these two keep method and body (RFC 9110 §15.4.8, §15.4.9).
  if ((status === 307 || status === 308) && !sealed.final && isReplayable(sealed)) {
    const path = ownPath(location, route, sealed)
    if (path !== undefined) return { kind: 'again', again: { reason: 'redirect', status, path } }
  }
  const rewritten = rewriteLocation(location, route, sealed.path)
  // A client that follows it would bypass the proxy and send its token there (decisions §7, Responses).
  if (rewritten === undefined)
    return { kind: 'fail', failure: new Failure('backend_error', { rule: 'redirect_foreign' }) }
  return { kind: 'stream', location: rewritten }
}

/** Longest challenge that is read, and most scopes of it, so that a backend can't fill links with them. */
const MOST_CHALLENGE = 2048
const MOST_SCOPES = 32

/** The scopes of a Bearer challenge with `insufficient_scope` (RFC 6750 §3.1); undefined for any other. */
function missingScopes(challenge: string | readonly string[] | undefined): readonly string[] | undefined {
  const text = [challenge ?? []].flat().join(', ').slice(0, MOST_CHALLENGE)
  if (!/^(.*[,\s])?bearer\s/i.test(text) || !/[\s,]error="?insufficient_scope\b/i.test(text)) return undefined
  const scope = /[\s,]scope="([\x20-\x21\x23-\x5B\x5D-\x7E]*)"/i.exec(text)?.[1] ?? ''
  return scope
    .split(' ')
    .filter((one) => one !== '')
    .slice(0, MOST_SCOPES)
}

/**
 * Decides by a final (not 1xx) status and its headers. 401 never reaches a client: the proxy's credential is wrong
 * (decisions §4). Redirects: own origin or 502 (decisions §7). All others are forwarded.
 */
export const dispositionOf = (
  status: number,
  headers: ParsedHeaders,
  head: ResponseHead,
  route: ForwardRoute,
  sealed: Sealed,
): Disposition => {
  const { location } = head
  if (status < 300 && location === undefined) return STREAM
  if (status === 401) {
    // Also for the last attempt: the response then depends on the type, which is unknown here.
    return { kind: 'again', again: { reason: 'credential_rejected', status } }
  }
  if (status === 403) {
    const scopes = missingScopes(headers['www-authenticate'])
    if (scopes !== undefined && sealed.route.obtain.canWiden?.(sealed.armed.known) === true)
      return { kind: 'again', again: { reason: 'insufficient_scope', status, scopes } }
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
  // A `Location` without a redirect (201): rewritten if below the route, unchanged for other origins. Other URLs of the
  // backend have no public equivalent and are removed.
  if (location === undefined) return STREAM
  const rewritten = rewriteLocation(location, route, sealed.path)
  if (rewritten !== undefined || isOwn(location, route, sealed)) return { kind: 'stream', location: rewritten }
  return { kind: 'stream', location }
}

/**
 * Why a response cannot be forwarded, by status and headers: an invalid status (RFC 9110 §15), an unsolicited protocol
 * switch, or a transfer coding besides `chunked` (RFC 9112 §6.1).
 */
export function unusableAnswer(status: number, headers: ParsedHeaders): Failure | undefined {
  if (status < 100 || status > 599) return bad('invalid HTTP status')
  if (status === 101) return bad('unsolicited upgrade')
  const coding = headers['transfer-encoding']
  if (coding === undefined || coding === 'chunked' || String(coding).toLowerCase() === 'chunked') return undefined
  return bad('unsupported transfer coding')
}

const bad = (detail: string): Failure => new Failure('backend_error', { detail })
