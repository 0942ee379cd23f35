import { describe, expect, it } from 'vitest'
import { explain, Failure, type FailureCode, FAILURES, OutboundError } from '../../src/core/index.ts'

const CODES = Object.keys(FAILURES) as FailureCode[]

describe('what is to be done', () => {
  it('never sends anybody to a log of ours: check writes none, and the page stands beside it', () => {
    const ours = /\b(the|our) log\b(?! of)|\blog line\b/i
    for (const code of CODES) expect(explain(new Failure(code)).remedy).not.toMatch(ours)
    const kinds = ['timeout', 'unreachable', 'too_large', 'blocked_address', 'breaker_open', 'overloaded'] as const
    for (const kind of kinds) {
      const failure = new Failure('backend_unreachable', { cause: new OutboundError(kind, {}) })
      expect(explain(failure).remedy).not.toMatch(ours)
    }
  })
})
