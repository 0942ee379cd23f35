import { Failure } from '../core/index.ts'
import { checkPath, checkQuery } from './path-check.ts'

export interface RequestTarget {
  /** Raw path, checked. */
  readonly path: string
  /** Raw query without `?`; empty when there is none. */
  readonly query: string
}

const ABSOLUTE = /^(https?):\/\/([^/?#\\]*)(.*)$/is

/**
 * Splits and checks a request target in origin-form, or in absolute-form when it names the same host as the `Host`
 * header (RFC 9112 §3.2.2). Throws `bad_request` for anything else and for paths that `checkPath` refuses.
 */
export function readRequestTarget(target: string, host: string): RequestTarget {
  const origin = target.charCodeAt(0) === 0x2f ? target : originForm(target, host)
  const mark = origin.indexOf('?')
  const path = mark === -1 ? origin : origin.slice(0, mark)
  checkPath(path)
  if (mark === -1) return { path, query: '' }
  const query = origin.slice(mark + 1)
  checkQuery(query)
  return { path, query }
}

function originForm(target: string, host: string): string {
  const match = ABSOLUTE.exec(target)
  if (match === null) throw new Failure('bad_request', { detail: 'the request target is in no form that is served' })
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
