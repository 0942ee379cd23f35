import { gatewayHeaderOf } from '../gateway-headers.ts'
import { SecretMask } from './secret-mask.ts'

/** Headers whose values are never shown, whoever sends them. */
const SECRET_HEADER =
  /^(?:authorization|proxy-authorization|(?:proxy-)?authentication-info|cookie2?|set-cookie2?|sec-websocket-protocol|sec-websocket-key)$|token|secret|passw|credential|signature|assertion|jwt|(?:api|access|auth|private|shared|subscription|app|application|function)s?-?key|-key$|(?:^|-)auth(?:$|-)|session(?!-id$)|(?:^|-)sid$|user-id$|oidc/
/** Their values are addresses, which may carry something in the query. */
const ADDRESS_HEADER: ReadonlySet<string> = new Set(['location', 'referer', 'content-location', 'link', 'refresh'])
/** Shown in part: two requests of one session can be told from those of another, and nobody gets into it. */
const SESSION_HEADER: ReadonlySet<string> = new Set(['mcp-session-id', 'last-event-id'])

type HeaderKind = 'plain' | 'secret' | 'address' | 'session'

/** What is known of a header by its name as it is written. */
export interface HeaderName {
  /** In lower case. */
  readonly name: string
  readonly kind: HeaderKind
}

const MAX_REMEMBERED = 2048
const MAX_REMEMBERED_LENGTH = 64
const known = new Map<string, HeaderName>()

/** How the value of a header is treated, by its name. */
export const headerKind = (raw: string): HeaderName => known.get(raw) ?? learn(raw)

function learn(raw: string): HeaderName {
  const name = raw.toLowerCase()
  const plain = name.replaceAll('_', '-')
  const kind = SESSION_HEADER.has(plain)
    ? 'session'
    : SECRET_HEADER.test(plain) || gatewayHeaderOf(plain)?.kind === 'token'
      ? 'secret'
      : ADDRESS_HEADER.has(plain)
        ? 'address'
        : 'plain'
  const learnt: HeaderName = { name, kind }
  if (raw.length <= MAX_REMEMBERED_LENGTH) {
    if (known.size >= MAX_REMEMBERED) known.clear()
    known.set(raw, learnt)
  }
  return learnt
}

/** Credentials stand after their scheme. */
const SCHEME = /^(?:bearer|basic|token|apikey|digest|negotiate|dpop) +/i

/** The texts in the value of a header that is secret by its name: credentials after their scheme, each cookie's value. */
export function secretsInHeader(name: string, value: string): string[] {
  if (name === 'cookie') return value.split(';').map((pair) => pair.slice(pair.indexOf('=') + 1).trim())
  if (name.startsWith('set-cookie')) return [value.slice(value.indexOf('=') + 1).split(';', 1)[0] ?? '']
  if (!name.endsWith('authorization')) return [value.replace(SCHEME, '').trim()]
  const credentials = value.trim().replace(/^\S+\s+/, '')
  return /^basic\s/i.test(value.trim()) ? [credentials, passwordOf(credentials)] : [credentials]
}

/** Of Basic credentials (RFC 7617); empty where they are none. */
const passwordOf = (credentials: string): string => {
  const text = Buffer.from(credentials, 'base64').toString('utf8')
  return text.slice(text.indexOf(':') + 1)
}

/** What a request came with that is secret by the names of its headers (names and values in turn): for what is told of it elsewhere. */
export function secretsOfRequest(rawHeaders: readonly string[]): SecretMask {
  const mask = new SecretMask()
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const { name, kind } = headerKind(rawHeaders[index] ?? '')
    if (kind === 'secret') for (const text of secretsInHeader(name, rawHeaders[index + 1] ?? '')) mask.add(text)
  }
  return mask
}
