import { describe, expect, it } from 'vitest'
import { Failure, OutboundError, type OutboundErrorKind } from '../../../src/core/index.ts'
import { parseRetryAfter, retryAfterFor } from '../../../src/http/index.ts'
import { busyFailure, outboundFailure, type ServiceFailures } from '../../../src/net/index.ts'

const NOW_MS = 1_800_000_000_000
const STS: ServiceFailures = {
  what: 'STS',
  unavailable: 'sts_unavailable',
  throttled: 'sts_throttled',
  unusable: 'sts_failed',
  isAboutTokens: true,
}

describe('no answer', () => {
  it.each<[OutboundErrorKind, number | undefined, string, number | undefined]>([
    ['timeout', undefined, 'sts_unavailable', 1],
    ['unreachable', undefined, 'sts_unavailable', 1],
    // A provider whose name resolves elsewhere for a while is away for a while.
    ['blocked_address', undefined, 'sts_unavailable', 1],
    ['breaker_open', 8, 'sts_unavailable', 8],
    ['overloaded', undefined, 'overloaded', 1],
    ['too_large', undefined, 'sts_failed', undefined],
    ['malformed', undefined, 'sts_failed', undefined],
  ])('because of %s (come back in %s s) is %s', (kind, wait, code, retryAfterSeconds) => {
    const error = new OutboundError(kind, wait === undefined ? {} : { retryAfterSeconds: wait })
    const failure = outboundFailure(error, STS)
    expect(failure).toMatchObject({ code, detail: `STS: ${kind}`, cause: error })
    expect(failure.retryAfterSeconds).toBe(retryAfterSeconds)
  })

  it('for another reason is what it was, or a bug', () => {
    const known = new Failure('secret_unavailable')
    expect(outboundFailure(known, STS)).toBe(known)
    expect(outboundFailure(new TypeError('quotes a secret'), STS).code).toBe('internal_error')
  })
})

describe('an answer', () => {
  it.each<[number, Record<string, string>, string, number]>([
    [429, {}, 'sts_throttled', 5],
    [429, { 'retry-after': '17' }, 'sts_throttled', 17],
    [500, { 'retry-after': new Date(NOW_MS + 8000).toUTCString() }, 'sts_unavailable', 8],
    [599, { 'retry-after': 'later' }, 'sts_unavailable', 5],
  ])('with %i %j is %s', (status, headers, code, retryAfterSeconds) => {
    expect(busyFailure({ status, headers }, STS, NOW_MS)).toMatchObject({ code, retryAfterSeconds })
  })

  it('of a service without token calls delays callers no longer than its Retry-After', () => {
    const keys: ServiceFailures = { what: 'keys', unavailable: 'identity_provider_unavailable', unusable: 'sts_failed' }
    expect(busyFailure({ status: 503, headers: {} }, keys, NOW_MS)?.retryAfterSeconds).toBe(1)
    expect(busyFailure({ status: 503, headers: { 'retry-after': '2' } }, keys, NOW_MS)?.retryAfterSeconds).toBe(2)
    expect(busyFailure({ status: 503, headers: { 'retry-after': '2' } }, STS, NOW_MS)?.retryAfterSeconds).toBe(5)
  })

  it.each([200, 302, 400, 403, 428, 499])('with %i is no reason to wait', (status) => {
    expect(busyFailure({ status, headers: { 'retry-after': '9' } }, STS, NOW_MS)).toBeUndefined()
  })
})

it.each<[string | undefined, number | undefined]>([
  [undefined, undefined],
  ['0', 1],
  ['1', 1],
  ['3600', 3600],
  ['86400', 3600],
  ['1.5', undefined],
  ['-1', undefined],
  ['soon', undefined],
  ['Thu, 01 Jan 1970 00:00:00 GMT', 1],
])('Retry-After %s is %s s', (value, seconds) => {
  expect(parseRetryAfter(value, NOW_MS)).toBe(seconds)
})

it('any failure may say when to come back; a 503 always does', () => {
  expect(retryAfterFor(new Failure('exchange_failed', { retryAfterSeconds: 3 }))).toBe('3')
  expect(retryAfterFor(new Failure('exchange_failed'))).toBeUndefined()
  expect(retryAfterFor(new Failure('sts_unavailable'))).toBe('5')
})
