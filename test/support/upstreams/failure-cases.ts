import { createHmac } from 'node:crypto'
import type { FailureCode } from '../../../src/core/index.ts'
import { START_MS } from '../ports.ts'
import { ACCESS, atHash, createKey, type Answer, type Idp } from './idp.ts'
import { SECRET } from './rig.ts'

/** A failure of a login at an upstream. */
export interface Case {
  readonly name: string
  readonly arrange: (idp: Idp) => unknown
  readonly code: FailureCode
  /** Logged reason. */
  readonly says?: string
  readonly parameters?: (idp: Idp) => URLSearchParams
  /** It is in the metadata, which are read before the user is sent there. */
  readonly isInMetadata?: boolean
  /** Seconds of Retry-After. */
  readonly wait?: number
}

/** Text of an upstream, which must appear nowhere. */
export const MARK = 'text-of-the-upstream'
const row = (name: string, arrange: Case['arrange'], code: FailureCode, says?: string, wait?: number): Case => ({
  name,
  arrange,
  code,
  ...(says === undefined ? {} : { says }),
  ...(wait === undefined ? {} : { wait }),
})
const came = (name: string, parameters: string, code: FailureCode, says?: string): Case => ({
  ...row(name, () => undefined, code, says),
  parameters: (now) => new URLSearchParams(parameters.replaceAll('ISS', encodeURIComponent(now.url))),
})
const oauth = (error: string, status = 400): Answer => ({ status, body: { error, error_description: MARK } })
const UNAVAILABLE = 'identity_provider_unavailable'
const UNUSABLE = 'identity_provider_error'

const ELSEWHERE: Answer = { status: 302, headers: { location: 'https://evil.example/x' } }

const DISCOVERY: readonly Case[] = [
  row('answers 500', (at) => (at.discovery = { status: 500 }), UNAVAILABLE, 'returned 500'),
  row('answers 429', (at) => (at.discovery = { status: 429, headers: { 'retry-after': '7' } }), UNAVAILABLE, '429', 7),
  row('answers 404', (at) => (at.discovery = { status: 404 }), UNUSABLE, 'answered 404'),
  row('leads elsewhere', (at) => (at.discovery = ELSEWHERE), UNUSABLE, 'redirects to another origin'),
  row('is cut off', (at) => (at.discovery = { cut: true }), UNAVAILABLE, 'unreachable'),
  row('is HTML', (at) => (at.discovery = { body: `<html>${MARK}` }), UNUSABLE, 'not a JSON object'),
  row('is a list', (at) => (at.discovery = { body: [] }), UNUSABLE, 'not a JSON object'),
  row('is too large', (at) => (at.discovery = { body: ' '.repeat(1024 * 1024 + 1) }), UNUSABLE, 'too_large'),
  row('has another issuer', (at) => (at.metadata = { issuer: `${at.url}/` }), UNUSABLE, 'a different issuer'),
  row('has no issuer', (at) => (at.metadata = { issuer: undefined }), UNUSABLE, 'a different issuer'),
  row('has no authorization_endpoint', (at) => (at.metadata = { authorization_endpoint: undefined }), UNUSABLE),
  row('has no token_endpoint', (at) => (at.metadata = { token_endpoint: 7 }), UNUSABLE, 'no https token_endpoint'),
  row('has a token_endpoint of plain http', (at) => (at.metadata = { token_endpoint: 'http://a.example/t' }), UNUSABLE),
  row('has a jwks_uri that is none', (at) => (at.metadata = { jwks_uri: 'no url' }), UNUSABLE, 'jwks_uri'),
  row('has a user-info endpoint of plain http', (at) => (at.metadata = { userinfo_endpoint: 'http://a/' }), UNUSABLE),
  row('signs with HMAC only', (at) => (at.metadata = { id_token_signing_alg_values_supported: ['HS256'] }), UNUSABLE),
  row(
    'doubles a name',
    (at) => (at.discovery = { body: '{"issuer":"a","issuer":"b"}' }),
    UNUSABLE,
    'unique field names',
  ),
]

const CALLBACK: readonly Case[] = [
  came('the user canceled', 'error=access_denied&iss=ISS&error_description=' + MARK, 'login_refused', 'access_denied'),
  came('a login is required', 'error=login_required&iss=ISS', 'login_refused', 'login_required'),
  came('the upstream has a fault', 'error=server_error&iss=ISS', UNAVAILABLE, 'server_error'),
  came('the upstream is busy', 'error=temporarily_unavailable&iss=ISS', UNAVAILABLE),
  came('a scope is not known', 'error=invalid_scope&iss=ISS', 'config_error', 'invalid_scope'),
  came('unknown client', 'error=unauthorized_client&iss=ISS', 'config_error'),
  came('an error of its own', `error=${MARK}&iss=ISS`, UNUSABLE, 'an unknown error'),
  came('an empty error', 'error=&iss=ISS', UNUSABLE),
  came('an error of another issuer’s', 'error=access_denied&iss=https://evil.example', UNUSABLE, 'a different issuer'),
  came('another issuer', 'code=1&iss=https://evil.example', UNUSABLE, 'a different issuer'),
  came('no issuer where one is announced', 'code=1', UNUSABLE, 'iss is missing'),
  came('two issuers', 'code=1&iss=ISS&iss=ISS', UNUSABLE, 'more than once'),
  came('two codes', 'code=1&code=2&iss=ISS', UNUSABLE, 'code occurs more than once'),
  came('two errors', 'error=a&error=b&iss=ISS', UNUSABLE, 'more than once'),
  came('no code', 'iss=ISS', UNUSABLE, 'code is missing'),
  came('an empty code', 'code=&iss=ISS', UNUSABLE, 'code is missing'),
  came('a code with a line break', 'code=a%0Ab&iss=ISS', UNUSABLE, 'code is missing'),
  came('a code that is too long', `code=${'x'.repeat(12 * 1024 + 1)}&iss=ISS`, UNUSABLE, 'too long'),
]

const TOKEN: readonly Case[] = [
  row('refuses the code', (at) => (at.token = oauth('invalid_grant')), UNUSABLE, 'invalid_grant'),
  row('refuses the client', (at) => (at.token = oauth('invalid_client', 401)), 'config_error', 'invalid_client'),
  row(
    'rejects the client without an error body',
    (at) => (at.token = { status: 401 }),
    'config_error',
    'invalid_client',
  ),
  row('refuses the user', (at) => (at.token = oauth('access_denied')), 'login_refused', 'access_denied'),
  row('refuses the redirect URI', (at) => (at.token = oauth('redirect_uri_mismatch')), 'config_error'),
  row('refuses with a text of its own', (at) => (at.token = oauth(`${MARK} it is`)), UNUSABLE, 'invalid error code'),
  row(
    'refuses in a 200 answer',
    (at) => (at.token = oauth('bad_verification_code', 200)),
    UNUSABLE,
    'bad_verification',
  ),
  row(
    'refuses with a 200 and invalid_client',
    (at) => (at.token = oauth('incorrect_client_credentials', 200)),
    'config_error',
  ),
  row('answers 500', (at) => (at.token = { status: 500, body: MARK }), UNAVAILABLE, 'returned 500'),
  row('answers 503 with an error', (at) => (at.token = oauth('invalid_grant', 503)), UNAVAILABLE),
  row('answers 429', (at) => (at.token = { status: 429, headers: { 'retry-after': '9' } }), UNAVAILABLE, '429', 9),
  row('is busy', (at) => (at.token = oauth('temporarily_unavailable')), UNAVAILABLE),
  row('is cut off', (at) => (at.token = { cut: true }), UNAVAILABLE, 'unreachable'),
  row(
    'answers 400 with HTML',
    (at) => (at.token = { status: 400, body: `<p>${MARK}` }),
    UNUSABLE,
    'without an OAuth error',
  ),
  row('answers 302', (at) => (at.token = { status: 302, headers: { location: 'https://evil.example' } }), UNUSABLE),
  row('answers a form', (at) => (at.token = { body: `access_token=${ACCESS}` }), UNUSABLE, 'not a JSON object'),
  row('answers too much', (at) => (at.token = { body: 'x'.repeat(1024 * 1024 + 1) }), UNUSABLE, 'too_large'),
  row('gives no access token', (at) => (at.tokens = { access_token: undefined }), UNUSABLE, 'access_token is missing'),
  row('gives an empty access token', (at) => (at.tokens = { access_token: '' }), UNUSABLE, 'access_token is missing'),
  row('gives a number as a token', (at) => (at.tokens = { access_token: 7 }), UNUSABLE, 'not a string'),
  row(
    'gives a token with a line break',
    (at) => (at.tokens = { access_token: 'a\r\nb' }),
    UNUSABLE,
    'invalid in a header',
  ),
  row('gives a token of 16 KiB', (at) => (at.tokens = { access_token: 'a'.repeat(16_385) }), UNUSABLE, '16 KiB'),
  row('gives another token type', (at) => (at.tokens = { token_type: 'DPoP' }), UNUSABLE, 'token_type'),
  row('gives no token type', (at) => (at.tokens = { token_type: undefined }), UNUSABLE, 'token_type'),
  row('gives a lifetime of zero', (at) => (at.tokens = { expires_in: 0 }), UNUSABLE, 'not positive'),
  row('gives a lifetime of words', (at) => (at.tokens = { expires_in: 'soon' }), UNUSABLE, 'not a number'),
  row('gives a refresh token that is none', (at) => (at.tokens = { refresh_token: {} }), UNUSABLE, 'refresh_token'),
  row('gives scopes that are none', (at) => (at.tokens = { scope: 7 }), UNUSABLE, 'scope list'),
]

const ID_TOKEN: readonly Case[] = [
  row('is missing', (at) => (at.tokens = { id_token: undefined }), UNUSABLE, 'no id_token'),
  row('is no JWT', (at) => (at.tokens = { id_token: MARK }), UNUSABLE, 'not verified'),
  row('has no signature', (at) => (at.tokens = { id_token: unsigned(at) }), UNUSABLE, 'not verified'),
  row('is signed with our secret', (at) => (at.tokens = { id_token: hmac(at) }), UNUSABLE, 'not verified'),
  row('is of a key that is not published', signedElsewhere, UNUSABLE, 'not verified'),
  row('is of another key under a known name', signedAsKnown, UNUSABLE, 'not verified'),
  { ...row('has an algorithm that is not announced', notAnnounced, UNUSABLE, 'not verified'), isInMetadata: true },
  row('is from another issuer', (at) => (at.claims = { iss: 'https://evil.example' }), UNUSABLE, 'iss'),
  row('is for another client', (at) => (at.claims = { aud: 'them' }), UNUSABLE, 'aud is not the client id'),
  row('has no audience', (at) => (at.claims = { aud: undefined }), UNUSABLE, 'aud'),
  row('is for several others', (at) => (at.claims = { aud: ['they', 'them'] }), UNUSABLE, 'aud is not the client id'),
  row('was asked for by another', (at) => (at.claims = { azp: 'them' }), UNUSABLE, 'azp'),
  row('has expired', (at) => (at.claims = { exp: START_MS / 1000 - 5 }), UNUSABLE, 'expired'),
  row('never ends', (at) => (at.claims = { exp: undefined }), UNUSABLE, 'exp'),
  row('ends in words', (at) => (at.claims = { exp: '2100' }), UNUSABLE, 'exp'),
  row('is for later', (at) => (at.claims = { nbf: START_MS / 1000 + 60 }), UNUSABLE, 'nbf'),
  row('has another nonce', (at) => (at.claims = { nonce: 'replayed' }), UNUSABLE, 'nonce'),
  row('has no nonce', (at) => (at.claims = { nonce: undefined }), UNUSABLE, 'nonce'),
  row('is about another access token', (at) => (at.claims = { at_hash: atHash('another') }), UNUSABLE, 'at_hash'),
  row('has no subject', (at) => (at.claims = { sub: undefined }), UNUSABLE, 'sub'),
  row('has a number as a subject', (at) => (at.claims = { sub: 7 }), UNUSABLE, 'sub'),
  row('has an empty subject', (at) => (at.claims = { sub: '' }), UNUSABLE, 'sub'),
]

const KEYS: readonly Case[] = [
  row('answer 500', (at) => (at.jwks = { status: 500 }), UNAVAILABLE, 'key set'),
  row('are no key set', (at) => (at.jwks = { body: { keys: 'none' } }), UNUSABLE, 'key set'),
  row('are none', (at) => (at.keys = []), UNUSABLE, 'not verified'),
  row('are cut off', (at) => (at.jwks = { cut: true }), UNAVAILABLE, 'unreachable'),
  row('are meant for encryption', (at) => (at.keys = [{ ...at.key.jwk, use: 'enc' }]), UNUSABLE, 'not verified'),
]

const withoutName =
  (arrange: Case['arrange']): Case['arrange'] =>
  (at) => {
    at.claims = { name: undefined }
    arrange(at)
  }
const USER_INFO: readonly Case[] = [
  row(
    'differs',
    withoutName((at) => (at.user = { sub: 'user-2', name: 'Two' })),
    UNUSABLE,
    'sub differs',
  ),
  row(
    'has no subject',
    withoutName((at) => (at.user = { name: 'Two' })),
    UNUSABLE,
    'sub differs',
  ),
]

/** Invalid user info: it matters only if the subject comes from it. */
export const USER_INFO_ANSWERS: readonly Case[] = [
  row(
    'answers 401',
    withoutName((at) => (at.userInfo = { status: 401, body: MARK })),
    UNUSABLE,
    'answered 401',
  ),
  row(
    'answers 500',
    withoutName((at) => (at.userInfo = { status: 500 })),
    UNAVAILABLE,
    'returned 500',
  ),
  row(
    'answers 429',
    withoutName((at) => (at.userInfo = { status: 429 })),
    UNAVAILABLE,
    '429',
    5,
  ),
  row(
    'is cut off',
    withoutName((at) => (at.userInfo = { cut: true })),
    UNAVAILABLE,
    'unreachable',
  ),
  row(
    'is a JWT',
    withoutName((at) => (at.userInfo = { body: 'a.b.c' })),
    UNUSABLE,
    'not a JSON object',
  ),
  row(
    'doubles a name',
    withoutName((at) => (at.userInfo = { body: '{"sub":"user-1","sub":"user-2"}' })),
    UNUSABLE,
  ),
  row(
    'redirects',
    withoutName((at) => (at.userInfo = { status: 307, headers: { location: '/' } })),
    UNUSABLE,
    '307',
  ),
]

const b64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const unsigned = (at: Idp) => `${b64({ alg: 'none' })}.${b64(at.idClaims())}.`
const hmac = (at: Idp) => {
  const input = `${b64({ alg: 'HS256' })}.${b64(at.idClaims())}`
  return `${input}.${createHmac('sha256', SECRET).update(input).digest('base64url')}`
}
async function signedElsewhere(at: Idp) {
  at.tokens = { id_token: await (await createKey()).sign(at.idClaims()) }
}
async function signedAsKnown(at: Idp) {
  at.tokens = { id_token: await (await createKey('RS256', at.key.jwk.kid)).sign(at.idClaims()) }
}
async function notAnnounced(at: Idp) {
  const key = await createKey('ES256')
  at.keys.push(key.jwk)
  at.metadata = { id_token_signing_alg_values_supported: ['RS256'] }
  at.tokens = { id_token: await key.sign(at.idClaims()) }
}

/** All of them, by the step at which they fail. */
export const FAILURES: readonly (readonly [string, readonly Case[]])[] = [
  ['discovery', DISCOVERY],
  ['the callback', CALLBACK],
  ['the token endpoint', TOKEN],
  ['the ID token', ID_TOKEN],
  ['the keys', KEYS],
  ['user info', USER_INFO],
]
