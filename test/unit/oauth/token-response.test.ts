import { describe, expect, test } from 'vitest'
import { asFailure, type Failure, type FailureCode } from '../../../src/core/index.ts'
import { callerGrant, OWN_GRANT, readTokenResponse, type TokenRequestContext } from '../../../src/oauth/index.ts'
import { issued } from '../../support/obtain/harness.ts'
import { START_MS } from '../../support/ports.ts'

const T = 'SECRET-ISSUED-TOKEN'
const DAY_SECONDS = 86_400
const text = JSON.stringify(issued(T))

/** A response: status, body and headers. */
type Answer = readonly [status: number, body: unknown, headers?: Readonly<Record<string, string>>]

const CONTEXT: TokenRequestContext = {
  url: 'https://idp.example/token?key=SECRET',
  sentAtMs: START_MS,
  nowMs: START_MS,
  service: { what: 'token endpoint', unavailable: 'identity_provider_unavailable', unusable: 'exchange_failed' },
  grant: callerGrant(),
}

function read([status, body, headers = {}]: Answer, more: Partial<TokenRequestContext> = {}) {
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
  return readTokenResponse({ status, headers, body: bytes }, { ...CONTEXT, ...more })
}

/** The failure of a response, without any of its values. */
function failureOf(answer: Answer, more: Partial<TokenRequestContext> = {}): Failure {
  const caught = (() => {
    try {
      return read(answer, more)
    } catch (error) {
      return error
    }
  })()
  expect(caught).toBeInstanceOf(Error)
  const failure = asFailure(caught)
  expect(`${failure.message}\n${failure.detail}\n${JSON.stringify(failure)}`).not.toMatch(/SECRET/)
  return failure
}

describe('a token', () => {
  test.each<[string, Record<string, unknown>, number | undefined]>([
    ['a plain response', {}, 3_600],
    ['a numeric string', { expires_in: '600' }, 600],
    ['a fraction', { expires_in: 100.5 }, 100.5],
    ['no expires_in', { expires_in: undefined }, undefined],
    ['expires_in null', { expires_in: null }, undefined],
    ['an empty expires_in', { expires_in: '' }, undefined],
    ['a lifetime without end', { expires_in: 1e12 }, 366 * DAY_SECONDS],
    ['bearer in another case', { token_type: 'bEARER' }, 3_600],
    ['unrequested fields', { scope: 'x', refresh_token: 'SECRET-REFRESH', extra: { a: [1] } }, 3_600],
  ])('is read from %s', (_what, members, seconds) => {
    const { accessToken, expiresAtMs } = read([200, issued(T, members)])
    expect(accessToken.reveal()).toBe(T)
    expect(expiresAtMs).toBe(seconds === undefined ? undefined : START_MS + seconds * 1_000)
  })

  test.each<[string, Answer]>([
    ['status 201', [201, text]],
    ['status 202', [202, text]],
    ['JSON with the content type of HTML', [200, text, { 'content-type': 'text/html' }]],
    ['JSON without a content type', [200, text, {}]],
  ])('is read from %s', (_what, answer) => {
    expect(read(answer).accessToken.reveal()).toBe(T)
  })

  test('expires from the request on, not from its response', () => {
    const late = { nowMs: START_MS + 5_000 }
    expect(read([200, issued(T, { expires_in: 6 })], late).expiresAtMs).toBe(START_MS + 6_000)
    expect(failureOf([200, issued(T, { expires_in: 5 })], late).detail).toMatch(/already expired on arrival/)
  })
})

describe('exchange_failed', () => {
  test.each<[string, Answer]>([
    ['no access_token', [200, issued(T, { access_token: undefined })]],
    ['an empty access_token', [200, issued('')]],
    ['access_token not a string', [200, issued(T, { access_token: 42 })]],
    ['access_token with a space', [200, issued(`${T} x`)]],
    ['access_token with a line break', [200, issued(`${T}\r\nX-Evil: 1`)]],
    ['access_token not ASCII', [200, issued(`${T}é`)]],
    ['access_token over 16 KiB', [200, issued(T.padEnd(16 * 1024 + 1, 'x'))]],
    ['no token_type', [200, issued(T, { token_type: undefined })]],
    ['another token_type', [200, issued(T, { token_type: 'DPoP' })]],
    ['token_type not a string', [200, issued(T, { token_type: ['Bearer'] })]],
    ['expires_in a word', [200, issued(T, { expires_in: 'soon' })]],
    ['expires_in a boolean', [200, issued(T, { expires_in: true })]],
    ['expires_in an object', [200, issued(T, { expires_in: {} })]],
    ['expires_in zero', [200, issued(T, { expires_in: 0 })]],
    ['expires_in negative', [200, issued(T, { expires_in: -1 })]],
    ['expires_in infinite', [200, text.replace('3600', '1e999')]],
    ['200 with a token and an error', [200, { ...issued(T), error: 'invalid_grant' }]],
    ['a name twice', [200, text.replace('{', '{"access_token":"SECRET-OTHER",')]],
    ['a name twice, once escaped', [200, text.replace('{', '{"\\u0061ccess_token":"SECRET-OTHER",')]],
    ['a name twice, deeper', [200, text.replace('{', '{"x":[{"a":1,"a":2}],')]],
    ['HTML', [200, '<html>SECRET</html>', { 'content-type': 'text/html' }]],
    ['HTML with the content type of JSON', [200, '<html>SECRET</html>', { 'content-type': 'application/json' }]],
    ['an array', [200, `[${text}]`]],
    ['a string', [200, '"SECRET"']],
    ['null', [200, 'null']],
    ['nothing', [200, '']],
    ['a truncated object', [200, text.slice(0, -5)]],
    ['something after the object', [200, `${text}x`]],
    ['a byte order mark', [200, Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(text)])]],
    ['not UTF-8', [200, Buffer.from(text.replace(T, 'T\xff'), 'latin1')]],
    ['members that are inherited only', [200, '{"__proto__":{"access_token":"SECRET"}}']],
    ['204', [204, '']],
    ['a redirect', [307, text, { location: 'https://other.example/token?SECRET' }]],
    ['400 without an error', [400, { message: 'SECRET' }]],
    ['400 with an error that is not a string', [400, { error: { code: 'SECRET' } }]],
    ['400 HTML', [400, '<html>SECRET</html>', { 'content-type': 'text/html' }]],
    ['406 without an error', [406, 'no']],
  ])('%s', (_what, answer) => {
    expect(failureOf(answer)).toMatchObject({ code: 'exchange_failed', challenge: undefined })
  })
})

describe('an OAuth error', () => {
  test.each<[string, number, FailureCode, FailureCode]>([
    ['invalid_grant', 400, 'invalid_token', 'config_error'],
    ['invalid_token', 401, 'invalid_token', 'config_error'],
    ['access_denied', 403, 'exchange_denied', 'config_error'],
    ['invalid_request', 400, 'exchange_denied', 'config_error'],
    ['invalid_target', 400, 'exchange_denied', 'config_error'],
    ['unauthorized_client', 400, 'exchange_denied', 'config_error'],
    ['invalid_client', 401, 'config_error', 'config_error'],
    ['unauthorized_client', 401, 'config_error', 'config_error'],
    ['invalid_scope', 400, 'config_error', 'config_error'],
    ['unsupported_grant_type', 400, 'config_error', 'config_error'],
    ['temporarily_unavailable', 400, 'identity_provider_unavailable', 'identity_provider_unavailable'],
    ['vendor_error', 400, 'exchange_failed', 'exchange_failed'],
    ['constructor', 403, 'exchange_failed', 'exchange_failed'],
  ])('%s (%d) is %s for a token of a caller, %s for one of the proxy itself', (error, status, ofCaller, ofProxy) => {
    const body = { error, error_description: 'SECRET details' }
    for (const [grant, code] of [
      [callerGrant(), ofCaller],
      [OWN_GRANT, ofProxy],
    ] as const) {
      const challenge = code === 'invalid_token' ? { error: 'invalid_token' } : undefined
      expect(failureOf([status, body], { grant })).toMatchObject({ code, challenge })
      // With 200 it means the same, except for a status that has a meaning of its own.
      if (status !== 401) expect(failureOf([200, body], { grant }).code).toBe(code)
    }
  })

  test.each([
    ['vendor_error.7', 'vendor_error.7'],
    ['x'.repeat(64), 'x'.repeat(64)],
    ['x'.repeat(65), 'with an invalid error code'],
    ['two words', 'with an invalid error code'],
    ['line\nbreak', 'with an invalid error code'],
  ])('%j is named in the detail as %j', (error, named) => {
    expect(failureOf([400, { error }]).detail).toBe(`token endpoint answered 400 ${named}`)
  })
})

test.each([404, 405, 410, 415])('%i is a wrong token URL, whatever the body', (status) => {
  for (const body of [
    '<html>SECRET</html>',
    { error: 'invalid_grant' },
    { error: 'Realm does not exist' },
    { error: 'invalid_request' },
  ]) {
    for (const grant of [callerGrant(), OWN_GRANT]) {
      expect(failureOf([status, body], { grant })).toMatchObject({
        code: 'config_error',
        status: 500,
        challenge: undefined,
        detail: `the token endpoint accepts no token requests: https://idp.example/token answered ${status}`,
      })
    }
  }
})

describe('an outage', () => {
  const after = (retryAfter: string) => ({ 'retry-after': retryAfter })
  test.each<[string, Answer, number, number]>([
    ['429 with seconds', [429, { error: 'invalid_grant' }, after('17')], 17, 17],
    ['429 with a date', [429, {}, after(new Date(START_MS + 8_000).toUTCString())], 8, 8],
    ['503 with a date that is past', [503, {}, after('Thu, 01 Jan 1970 00:00:00 GMT')], 5, 1],
    ['503 with nonsense', [503, {}, after('later')], 5, 1],
    ['503 with a day', [503, {}, after('86400')], 3_600, 3_600],
    ['500', [500, 'SECRET'], 5, 1],
  ])('%s has a longer pause for a token of a caller', (_what, answer, ofToken, other) => {
    for (const [isAboutTokens, retryAfterSeconds] of [
      [true, ofToken],
      [false, other],
    ] as const) {
      const service = { ...CONTEXT.service, isAboutTokens }
      expect(failureOf(answer, { service })).toMatchObject({ code: 'identity_provider_unavailable', retryAfterSeconds })
    }
  })
})
