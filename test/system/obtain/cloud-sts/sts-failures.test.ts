import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { FAILURES, Failure, type FailureCode } from '../../../../src/core/index.ts'
import { createCachedSource } from '../../../../src/obtain/cached.ts'
import { createCloudStsSource } from '../../../../src/obtain/cloud-sts/index.ts'
import { asked } from '../../../support/shown-tokens.ts'
import { authOf, callerOf, depsOf, NOW_MS } from '../../../support/obtain/cloud-sts/support/deps.ts'
import {
  credentialsXml,
  errorXml,
  startStsDouble,
  type StsAnswer,
  type StsDouble,
} from '../../../support/obtain/cloud-sts/support/sts-double.ts'

let sts: StsDouble
beforeAll(async () => {
  sts = await startStsDouble()
})
afterAll(() => sts.close())
afterEach(() => sts.calls.splice(0))

const ROLE = 'arn:aws:iam::123456789012:role/reader'

function sourceWith(answer: StsAnswer) {
  sts.answer = () => answer
  const made = depsOf(sts.url, { deadlineMs: 400 })
  const auth = authOf({ fallbackRoleArn: ROLE })
  const source = asked(createCachedSource(auth, createCloudStsSource(auth, made.deps), made.deps))
  return { ...made, source }
}

async function failureOf(attempt: () => unknown): Promise<Failure> {
  try {
    await attempt()
  } catch (error) {
    if (error instanceof Failure) return error
    throw error
  }
  throw new Error('no failure')
}

interface Row {
  readonly what: string
  readonly answer: StsAnswer
  readonly code: FailureCode
  readonly status: number
  readonly retryAfter?: number
  /** How often STS is asked by one request. Default 1. */
  readonly calls?: number
  /** Seconds for which nothing is asked again; 0 = the next request asks. */
  readonly pause: number
}

const refusal = (code: string, status = 400, headers: Record<string, string> = {}): StsAnswer => ({
  status,
  headers,
  body: errorXml(code),
})
const row = (
  what: string,
  answer: StsAnswer,
  code: FailureCode,
  status: number,
  pause: number,
  retryAfter?: number,
): Row => ({
  what,
  answer,
  code,
  status,
  pause,
  ...(retryAfter === undefined ? {} : { retryAfter }),
})

// prettier-ignore
const ROWS: readonly Row[] = [
  row('ExpiredTokenException', refusal('ExpiredTokenException'), 'expired_token', 401, 0),
  row('ExpiredToken', refusal('ExpiredToken'), 'expired_token', 401, 0),
  row('IDPRejectedClaim', refusal('IDPRejectedClaim', 403), 'invalid_token', 401, 0),
  row('AccessDenied', refusal('AccessDenied', 403), 'role_denied', 403, 10),
  row('AccessDeniedException', refusal('AccessDeniedException', 403), 'role_denied', 403, 10),
  { ...row('InvalidIdentityToken', refusal('InvalidIdentityToken'), 'config_error', 500, 10), calls: 2 },
  { ...row('InvalidIdentityTokenException', refusal('InvalidIdentityTokenException'), 'config_error', 500, 10), calls: 2 },
  { ...row('InvalidIdentityToken without keys', { status: 400, body: errorXml('InvalidIdentityToken', "Couldn't retrieve verification key from your identity provider, please reference …") }, 'identity_provider_unavailable', 503, 1, 1), calls: 2 },
  row('ValidationError', refusal('ValidationError'), 'config_error', 500, 10),
  row('RegionDisabledException', refusal('RegionDisabledException', 403), 'config_error', 500, 10),
  row('PackedPolicyTooLarge', refusal('PackedPolicyTooLarge'), 'config_error', 500, 10),
  row('MalformedPolicyDocument', refusal('MalformedPolicyDocument'), 'config_error', 500, 10),
  row('a code that is not listed', refusal('SomethingNew'), 'config_error', 500, 10),
  row('IDPCommunicationError', refusal('IDPCommunicationError'), 'identity_provider_unavailable', 503, 1, 1),
  row('Throttling', refusal('Throttling'), 'sts_throttled', 503, 1, 1),
  row('Throttling with Retry-After', refusal('Throttling', 400, { 'retry-after': '7' }), 'sts_throttled', 503, 7, 7),
  row('Throttling with a Retry-After date', refusal('Throttling', 400, { 'retry-after': new Date(NOW_MS + 9_000).toUTCString() }), 'sts_throttled', 503, 9, 9),
  row('Throttling with a Retry-After of an hour', refusal('Throttling', 400, { 'retry-after': '3600' }), 'sts_throttled', 503, 30, 3600),
  row('Throttling with a broken Retry-After', refusal('Throttling', 400, { 'retry-after': 'soon' }), 'sts_throttled', 503, 1, 1),
  row('ThrottlingException', refusal('ThrottlingException', 429), 'sts_throttled', 503, 5, 5),
  row('RequestLimitExceeded', refusal('RequestLimitExceeded', 503), 'sts_throttled', 503, 5, 5),
  row('429 without a body', { status: 429 }, 'sts_throttled', 503, 5, 5),
  row('ServiceUnavailable', refusal('ServiceUnavailable', 503), 'sts_unavailable', 503, 5, 5),
  row('InternalFailure', refusal('InternalFailure', 500), 'sts_unavailable', 503, 5, 5),
  row('500 as HTML', { status: 500, body: '<html>oops' }, 'sts_unavailable', 503, 5, 5),
  row('502 without a body', { status: 502 }, 'sts_unavailable', 503, 5, 5),
  row('503 with Retry-After', { status: 503, headers: { 'retry-after': '9' } }, 'sts_unavailable', 503, 9, 9),
  row('no response in time', { delayMs: 2_000 }, 'sts_unavailable', 503, 1, 1),
  row('a connection that breaks', { reset: true }, 'sts_unavailable', 503, 1, 1),
  row('403 as HTML', { status: 403, body: '<html><body>no</body></html>' }, 'sts_failed', 502, 1),
  row('403 as JSON', { status: 403, body: '{"message": "no"}' }, 'sts_failed', 502, 1),
  row('a redirect', { status: 302, headers: { location: 'http://127.0.0.1:1/' } }, 'sts_failed', 502, 1),
  row('200 without a body', {}, 'sts_failed', 502, 1),
  row('200 as HTML', { body: '<html><body>hi</body></html>' }, 'sts_failed', 502, 1),
  row('200 as JSON', { body: '{}' }, 'sts_failed', 502, 1),
  row('200 cut short', { body: credentialsXml({}).slice(0, 400) }, 'sts_failed', 502, 1),
  row('an answer without end', { body: 'x'.repeat(300_000) }, 'sts_failed', 502, 1),
  row('entities that expand', { body: `<!DOCTYPE a [<!ENTITY b "${'c'.repeat(99)}">]>${credentialsXml({ sessionToken: '&b;' })}` }, 'sts_failed', 502, 1),
  row('an empty key id', { body: credentialsXml({ accessKeyId: '' }) }, 'sts_failed', 502, 1),
  row('an empty secret', { body: credentialsXml({ secretAccessKey: '' }) }, 'sts_failed', 502, 1),
  row('an empty session token', { body: credentialsXml({ sessionToken: '' }) }, 'sts_failed', 502, 1),
  row('a key id that breaks a header', { body: credentialsXml({ accessKeyId: 'ASIATEST TESTTEST/01' }) }, 'sts_failed', 502, 1),
  row('a session token that breaks a header', { body: credentialsXml({ sessionToken: 'a\r\nx-evil: b' }) }, 'sts_failed', 502, 1),
  row('an end in the past', { body: credentialsXml({ expiration: '2020-01-01T00:00:00Z' }) }, 'sts_failed', 502, 1),
  row('an end right now', { body: credentialsXml({ expiration: '2029-06-01T00:00:00Z' }) }, 'sts_failed', 502, 1),
  row('an end after any role session', { body: credentialsXml({ expiration: '2029-06-01T12:05:01Z' }) }, 'sts_failed', 502, 1),
  row('an end that is no time', { body: credentialsXml({ expiration: 'soon' }) }, 'sts_failed', 502, 1),
]

describe('how a call of STS fails', () => {
  test.each(ROWS)('$what → $code', async ({ answer, code, status, retryAfter, pause, calls = 1 }) => {
    const { source, counts, clock } = sourceWith(answer)
    const caller = callerOf({ sub: 'alice' })
    const failure = await failureOf(() => source.obtain(caller))

    expect({ code: failure.code, status: failure.status, retryAfter: failure.retryAfterSeconds }).toEqual({
      code,
      status,
      retryAfter,
    })
    expect(failure.challenge).toEqual(status === 401 ? { error: 'invalid_token' } : undefined)
    expect(sts.calls).toHaveLength(calls)
    expect([...counts].filter(([name]) => name.includes(` ${code}`))).toEqual([
      [expect.stringContaining('cloudSts'), 1],
    ])

    // While the pause lasts the same failure is answered without asking; afterwards STS is asked again.
    sts.answer = () => ({ body: credentialsXml({}) })
    if (pause > 0) {
      clock.nowMs += pause * 1_000 - 1
      expect((await failureOf(() => source.obtain(caller))).code).toBe(code)
      expect(sts.calls).toHaveLength(calls)
      clock.nowMs += 1
    }
    expect(await source.obtain(caller)).toMatchObject({ kind: 'aws', accessKeyId: 'ASIATESTTESTTEST0001' })
    expect(sts.calls).toHaveLength(calls + 1)
  })

  test('InvalidIdentityToken that was only said once is not heard of', async () => {
    const { source } = sourceWith(refusal('InvalidIdentityToken'))
    sts.answer = () => (sts.calls.length === 1 ? refusal('InvalidIdentityToken') : { body: credentialsXml({}) })
    expect(await source.obtain(callerOf({ sub: 'alice' }))).toMatchObject({ kind: 'aws' })
    expect(sts.calls).toHaveLength(2)
  })

  test('messages of STS are in no detail and no public sentence; an unknown code is in the detail only', async () => {
    for (const { answer } of ROWS) {
      const { source } = sourceWith(answer)
      const failure = await failureOf(() => source.obtain(callerOf({ sub: 'alice' })))
      const sentence = FAILURES[failure.code].sentence
      expect(`${failure.message} ${failure.detail} ${sentence}`).not.toMatch(/must not be repeated|x-evil|oops/)
      expect(sentence).not.toContain('SomethingNew')
    }
  })
})
