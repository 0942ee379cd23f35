import { describe, expect, it } from 'vitest'
import { asFailure, causeOf, Failure, FAILURES, OutboundError } from '../../../src/core/index.ts'

describe('what is logged of a cause', () => {
  it.each([
    [new TypeError('text that quotes a token'), { name: 'TypeError' }],
    [Object.assign(new Error('x'), { code: 'ECONNRESET' }), { name: 'Error', code: 'ECONNRESET' }],
    [
      new OutboundError('unreachable', { cause: Object.assign(new Error('x'), { code: 'ENOTFOUND' }) }),
      { name: 'OutboundError', kind: 'unreachable', code: 'ENOTFOUND' },
    ],
    ['a string', {}],
    [null, {}],
    [undefined, {}],
    [{ code: 42 }, { code: '42' }],
  ])('%s', (error, shown) => {
    expect(causeOf(error)).toEqual(shown)
  })
})

describe('a failure', () => {
  it('has its status from the table, and nothing of its cause in its text', () => {
    const failure = new Failure('sts_throttled', { detail: 'too many calls', cause: new Error('secret') })
    expect([failure.status, failure.message]).toEqual([503, 'sts_throttled: too many calls'])
    expect(asFailure(failure)).toBe(failure)
  })

  it('has no stack, and leaves those of others as they are', () => {
    const { stackTraceLimit } = Error
    expect(new Failure('not_found', { detail: 'no such thing' }).stack).toBe('Failure: not_found: no such thing')
    expect(Error.stackTraceLimit).toBe(stackTraceLimit)
    expect(new Error('x').stack).toMatch(/\n +at /)
  })

  it('is internal around anything that should never have been thrown', () => {
    expect(asFailure(new RangeError('x'))).toMatchObject({ code: 'internal_error', status: 500 })
  })

  it.each(Object.entries(FAILURES))('%s has a status that fits whose fault it is', (code, row) => {
    // The response asks the person to connect an account; 401 and 403 would start a login at the proxy.
    if (code === 'not_connected') return expect(row.status).toBe(200)
    expect(row.status).toBeGreaterThanOrEqual(400)
    if (row.fault === 'caller_token') expect(row.status).toBe(401)
    if (row.fault === 'caller_rights') expect(row.status).toBe(403)
    if (row.fault === 'backend') expect([502, 503, 504]).toContain(row.status)
    if (row.fault === 'identity_provider') expect([502, 503]).toContain(row.status)
    expect(row.sentence).toMatch(/^[A-Z].*\.$/)
    expect(row.remedy).toMatch(/\.$/)
  })
})
