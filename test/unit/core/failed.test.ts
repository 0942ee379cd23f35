import { expect, it } from 'vitest'
import { isFailed } from '../../../src/core/index.ts'

it.each([
  ['an answer', 200, '', false],
  ["a backend's error", 500, '', true],
  ['a refusal', 403, 'no_role', true],
  ['the first request of a login, and a probe of check', 401, 'missing_token', false],
  ['a token that is not valid', 401, 'invalid_token', true],
  ['a stream that its client ended', 200, 'client_gone', false],
  ['a client that left before', 499, 'client_gone', false],
  ['an answer that broke off', 200, 'aborted', true],
])('%s counts among failures or not', (_what, status, reason, expected) => {
  expect(isFailed(status, reason)).toBe(expected)
})
