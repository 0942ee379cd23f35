import { Failure } from '../core/index.ts'
import { credentialsOf } from './header-policy.ts'

/** Shorter credentials are searched only in the query: a path or a host could contain them by chance. */
const MIN_LENGTH_IN_PATH = 16

/**
 * Rejects a request with an access token in its target: a query parameter `access_token` in any spelling (decisions
 * §2.2), or the raw credentials of an `Authorization` line, plain or percent-encoded, in query or path (decisions
 * §3.1: they must not reach a backend, and removing them would change the target). Throws `bad_request`.
 */
export function checkTokenInTarget(path: string, query: string, authorization: readonly string[]): void {
  if (query !== '') {
    if (hasAccessTokenParameter(query)) throw refused('the query has an access_token')
    for (const value of authorization) {
      const credentials = credentialsOf(value)
      if (credentials !== '' && contains(query, credentials)) throw refused('the query contains the access token')
    }
  }
  if (path.length < MIN_LENGTH_IN_PATH) return
  for (const value of authorization) {
    const credentials = credentialsOf(value)
    if (credentials.length >= MIN_LENGTH_IN_PATH && contains(path, credentials))
      throw refused('the path contains the access token')
  }
}

/**
 * Rejects a `Host` with the raw credentials of an `Authorization` line: backends receive the requested host
 * (decisions §3.1). Throws `bad_request`.
 */
export function checkTokenInHost(host: string, authorization: readonly string[]): void {
  if (host.length < MIN_LENGTH_IN_PATH) return
  for (const value of authorization) {
    const credentials = credentialsOf(value)
    if (credentials.length >= MIN_LENGTH_IN_PATH && host.includes(credentials))
      throw refused('the host contains the access token')
  }
}

function hasAccessTokenParameter(query: string): boolean {
  if (!/token/i.test(query) && !query.includes('%')) return false
  // Some servers still accept `;` as a separator.
  return query.split(/[&;]/).some((pair) => {
    const equals = pair.indexOf('=')
    return decoded(equals === -1 ? pair : pair.slice(0, equals)).toLowerCase() === 'access_token'
  })
}

const contains = (text: string, credentials: string): boolean =>
  text.length >= credentials.length &&
  (text.includes(credentials) || (text.includes('%') && decoded(text).includes(credentials)))

/** Percent-decoding of single bytes: credentials and the parameter name are ASCII. */
const decoded = (text: string): string =>
  text.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))

const refused = (detail: string): Failure =>
  new Failure('bad_request', { detail, challenge: { error: 'invalid_request' } })
