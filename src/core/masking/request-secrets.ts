import { gatewayHeaderOf } from '../gateway-headers.ts'
import { SecretMask } from './secret-mask.ts'

/** Headers whose values are never shown, for any sender. */
const SECRET_HEADER =
  /^(?:authorization|proxy-authorization|(?:proxy-)?authentication-info|cookie2?|set-cookie2?|sec-websocket-protocol|sec-websocket-key)$|token|secret|passw|credential|signature|assertion|jwt|(?:api|access|auth|private|shared|subscription|app|application|function)s?-?key|-key$|(?:^|-)auth(?:$|-)|session(?!-id$)|(?:^|-)sid$|user-id$|oidc/
/** Headers with URLs, whose query may hold a secret. */
const ADDRESS_HEADER: ReadonlySet<string> = new Set(['location', 'referer', 'content-location', 'link', 'refresh'])
/** Shown in part: enough to correlate requests of a session, too little to use it. */
const SESSION_HEADER: ReadonlySet<string> = new Set(['mcp-session-id', 'last-event-id'])

type HeaderKind = 'plain' | 'secret' | 'address' | 'session'

/** Classification of a header name. */
export interface HeaderName {
  /** In lower case. */
  readonly name: string
  readonly kind: HeaderKind
}

const MAX_REMEMBERED = 2048
const MAX_REMEMBERED_LENGTH = 64
const known = new Map<string, HeaderName>()

/** How to treat the value of a header, by its name. */
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

/** Credentials follow their scheme. */
const SCHEME = /^(?:bearer|basic|token|apikey|digest|negotiate|dpop) +/i

/** Secret parts of a secret header's value: credentials after the scheme, or the value of each cookie. */
export function secretsInHeader(name: string, value: string): string[] {
  if (name === 'cookie') return value.split(';').map((pair) => pair.slice(pair.indexOf('=') + 1).trim())
  if (name.startsWith('set-cookie')) return [value.slice(value.indexOf('=') + 1).split(';', 1)[0] ?? '']
  if (!name.endsWith('authorization')) return [value.replace(SCHEME, '').trim()]
  const credentials = value.trim().replace(/^\S+\s+/, '')
  return /^basic\s/i.test(value.trim()) ? [credentials, passwordOf(credentials)] : [credentials]
}

/** The password of Basic credentials (RFC 7617); empty when they are invalid. */
const passwordOf = (credentials: string): string => {
  const text = Buffer.from(credentials, 'base64').toString('utf8')
  return text.slice(text.indexOf(':') + 1)
}

/** Collects the secrets in a request's headers (names and values alternate), to mask them elsewhere. */
export function secretsOfRequest(rawHeaders: readonly string[]): SecretMask {
  const mask = new SecretMask()
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const { name, kind } = headerKind(rawHeaders[index] ?? '')
    if (kind === 'secret') for (const text of secretsInHeader(name, rawHeaders[index + 1] ?? '')) mask.add(text)
  }
  return mask
}
