import { plainHeaderName } from '../core/index.ts'
import { AMZ_CREDENTIALS } from './header-policy.ts'

const CREDENTIALS: ReadonlySet<string> = new Set(AMZ_CREDENTIALS)

/** Percent-decoding of single bytes: the relevant names are ASCII. */
const decoded = (text: string): string =>
  text.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))

function isCredential(pair: string): boolean {
  const equals = pair.indexOf('=')
  return CREDENTIALS.has(plainHeaderName(decoded(equals === -1 ? pair : pair.slice(0, equals))))
}

/**
 * Removes the credentials and the signature of a presigned request from a caller's raw query, as from headers
 * (decisions §3.1). The rest is unchanged.
 */
export function withoutAmzParameters(query: string): string {
  if (!/amz|%/i.test(query)) return query
  const pairs = query.split('&')
  const kept = pairs.filter((pair) => !isCredential(pair))
  return kept.length === pairs.length ? query : kept.join('&')
}
