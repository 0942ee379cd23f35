import { Failure, type RuleCode, Secret, type PresentedToken } from '../core/index.ts'

/** Maximum length of an access token, in bytes (decisions §2.2). */
export const MAX_TOKEN_BYTES = 16 * 1024

/** `Bearer` in any case, one or more spaces, token68 (RFC 6750 §2.1, RFC 9110 §11.4). */
const BEARER = /^bearer +([A-Za-z0-9\-._~+/]+=*)$/i

/** The scheme Bearer, with or without a valid token. */
const SCHEME = /^bearer(?:\s|$)/i

/**
 * The access token in the `Authorization` header lines; undefined without one: no such line, an empty one, or another
 * scheme, which is not an error (RFC 6750 §3.1). Throws `bad_request` (challenge `invalid_request`) for more than one
 * line, `invalid_token` for a bearer token that is missing, not token68 or longer than 16 KiB (decisions §2.2).
 */
export function parseBearer(values: readonly string[]): string | undefined {
  const [value] = values
  if (value === undefined) return undefined
  if (values.length > 1)
    throw new Failure('bad_request', {
      rule: 'authorization_repeated',
      challenge: { error: 'invalid_request' },
    })
  if (!SCHEME.test(value)) return undefined
  // Check the length first: the following checks cost linear time.
  if (value.length > MAX_TOKEN_BYTES + 'Bearer '.length) throw unusable('token_too_long')
  const token = BEARER.exec(value)?.[1]
  if (token === undefined) throw unusable('bearer_malformed')
  return token
}

/** IANA's registered schemes by lower-case name: only these are safe to repeat in messages. */
const SCHEMES: ReadonlyMap<string, string> = new Map(
  [
    'Basic',
    'Digest',
    'DPoP',
    'GNAP',
    'HOBA',
    'Mutual',
    'Negotiate',
    'NTLM',
    'OAuth',
    'PrivateToken',
    'AWS4-HMAC-SHA256',
  ].map((name) => [name.toLowerCase(), name]),
)

/** Describes an `Authorization` header without a bearer token, quoting only registered schemes. */
export function otherScheme([value = '']: readonly string[]): string | undefined {
  const text = value.trim()
  if (text === '') return undefined
  const [name = ''] = text.split(/[\s,]/, 1)
  const scheme = SCHEMES.get(name.toLowerCase())
  if (scheme !== undefined) return `the Authorization header has the scheme ${scheme}, expected Bearer`
  return name === text
    ? 'the Authorization header has no scheme, expected Bearer and the token'
    : 'the Authorization header has another scheme than Bearer'
}

/** The presented token, read on demand. Throws `internal_error` without one. */
export const presentedToken =
  (authorization: readonly string[]): PresentedToken =>
  () => {
    const token = parseBearer(authorization)
    if (token === undefined) throw new Failure('internal_error', { detail: 'no token presented' })
    return new Secret(token)
  }

const unusable = (rule: RuleCode): Failure =>
  new Failure('invalid_token', { rule, challenge: { error: 'invalid_token' } })
