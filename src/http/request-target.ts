import { Failure } from '../core/index.ts'
import { checkPath, checkQuery } from './path-check.ts'

export interface RequestTarget {
  /** Raw path, checked. */
  readonly path: string
  /** Raw query without `?`; empty without one. */
  readonly query: string
  /** Ends with `?`: a different URL to a backend than without (RFC 3986 §6.2.3). */
  readonly hasEmptyQuery: boolean
}

const ABSOLUTE = /^(https?):\/\/([^/?#\\]*)(.*)$/is

/**
 * Splits and checks a request target in origin-form, or in absolute-form if it names the same host as the `Host`
 * header (RFC 9112 §3.2.2). Throws `bad_request` for anything else and for paths that `checkPath` rejects.
 */
export function readRequestTarget(target: string, host: string): RequestTarget {
  const origin = originFormOf(target, host)
  const mark = origin.indexOf('?')
  const path = mark === -1 ? origin : origin.slice(0, mark)
  checkPath(path)
  if (mark === -1) return { path, query: '', hasEmptyQuery: false }
  const query = origin.slice(mark + 1)
  checkQuery(query)
  return { path, query, hasEmptyQuery: query === '' }
}

/**
 * Converts a request target to origin-form; an absolute-form one must name the same host as the `Host` header. Throws
 * `bad_request` for anything else.
 */
export function originFormOf(target: string, host: string): string {
  if (target.charCodeAt(0) === 0x2f) return target
  const match = ABSOLUTE.exec(target)
  if (match === null) throw new Failure('bad_request', { detail: 'the form of the request target is not supported' })
  const scheme = (match[1] ?? '').toLowerCase()
  const authority = match[2] ?? ''
  const rest = match[3] ?? ''
  if (withoutDefaultPort(authority, scheme) !== withoutDefaultPort(host, scheme))
    throw new Failure('bad_request', { detail: 'the request target names another host than the Host header' })
  return rest.startsWith('/') ? rest : `/${rest}`
}

function withoutDefaultPort(authority: string, scheme: string): string {
  return authority.toLowerCase().replace(scheme === 'https' ? /:443$/ : /:80$/, '')
}
