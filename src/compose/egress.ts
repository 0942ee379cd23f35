import { Failure } from '../core/index.ts'
import type { EgressProxy } from '../net/index.ts'

/**
 * The egress proxy of the environment, by the usual variables in either case. Empty variables count as unset.
 * `HTTP_PROXY` in capitals is honored: no CGI request header can set it here. Throws `config_error` for an invalid URL.
 */
export function egressFrom(env: Readonly<Record<string, string | undefined>>): EgressProxy | undefined {
  const first = (...names: string[]): string | undefined => names.map((name) => env[name]).find(Boolean)
  for (const name of ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy']) check(name, env[name])
  const httpsProxy = first('HTTPS_PROXY', 'https_proxy')
  const httpProxy = first('HTTP_PROXY', 'http_proxy')
  const noProxy = first('NO_PROXY', 'no_proxy')
  if (httpsProxy === undefined && httpProxy === undefined) return undefined
  return {
    ...(httpsProxy === undefined ? {} : { httpsProxy }),
    ...(httpProxy === undefined ? {} : { httpProxy }),
    ...(noProxy === undefined ? {} : { noProxy }),
  }
}

/** The message omits the value: it may contain a password. */
function check(name: string, value: string | undefined): void {
  if (value === undefined || value === '') return
  const url = URL.parse(value.includes('://') ? value : `http://${value}`)
  const isProxy = url !== null && /^https?:$/.test(url.protocol) && url.hostname !== '' && isDecodable(url)
  if (!isProxy) throw new Failure('config_error', { detail: `${name} is not a proxy URL, expected http://HOST:PORT` })
}

/** A user name or password with an invalid percent-encoding can't be sent. */
function isDecodable({ username, password }: URL): boolean {
  try {
    decodeURIComponent(username + password)
    return true
  } catch {
    return false
  }
}

/** The hosts of `egress`, for logs: proxy URLs may contain passwords. */
export function describeEgress(egress: EgressProxy): Record<string, string> {
  const host = (url: string | undefined): string | undefined =>
    url === undefined ? undefined : (URL.parse(url.includes('://') ? url : `http://${url}`)?.host ?? 'unreadable')
  const shown = { httpsProxy: host(egress.httpsProxy), httpProxy: host(egress.httpProxy), noProxy: egress.noProxy }
  return Object.fromEntries(Object.entries(shown).filter((entry): entry is [string, string] => entry[1] !== undefined))
}
