import { describe, expect, it } from 'vitest'
import {
  explain,
  diagnoseConnection,
  Failure,
  type FailureCode,
  FAILURES,
  logRequest,
  OutboundError,
} from '../../../src/core/index.ts'
import { recordLog } from '../../support/e2e/lab.ts'
import { errorResponseFor } from '../../../src/bridge/bridge-error.ts'

const CODES = Object.keys(FAILURES) as FailureCode[]

describe('what is to be done', () => {
  it('never refers to the log: check writes none, and the page is beside it', () => {
    const ours = /\b(the|our) log\b(?! of)|\blog line\b/i
    for (const code of CODES) expect(explain(new Failure(code)).remedy).not.toMatch(ours)
    const kinds = ['timeout', 'unreachable', 'too_large', 'blocked_address', 'breaker_open', 'overloaded'] as const
    for (const kind of kinds) {
      const failure = new Failure('backend_unreachable', { cause: new OutboundError(kind, {}) })
      expect(explain(failure).remedy).not.toMatch(ours)
    }
  })
})

describe('one vocabulary', () => {
  const refused = Object.assign(new Error('connect ECONNREFUSED 10.0.0.1:80'), { code: 'ECONNREFUSED' })

  it('is in the log what it is on the page and in check', () => {
    const log = recordLog()
    const line = {
      requestId: 'r',
      route: 'a',
      method: 'POST',
      caller: undefined,
      status: 502,
      reason: '',
      durationMs: 1,
    }
    const failure = new Failure('backend_unreachable', { cause: new OutboundError('unreachable', { cause: refused }) })
    logRequest(log, line, failure)
    const { cause, remedy } = explain(failure)
    expect(JSON.parse(log.lines[0]?.replace(/ request$/, '') ?? '')).toMatchObject({ why: cause, remedy })
    expect([cause, remedy]).toEqual([
      'connection refused: no server listens at this host and port (ECONNREFUSED)',
      'Start the server, or correct the host and port.',
    ])
  })

  it.each(['ECONNREFUSED', 'ENOTFOUND', 'CERT_HAS_EXPIRED', 'DEPTH_ZERO_SELF_SIGNED_CERT', 'EPROTO'])(
    'is what stdio answers (%s)',
    (code) => {
      const error = new OutboundError('unreachable', { cause: Object.assign(new Error('x'), { code }) })
      const known = diagnoseConnection(error)
      const said = JSON.parse(errorResponseFor(1, error, 'at x').toString()) as { error: { message: string } }
      expect(said.error.message).toBe(
        `The MCP server at x is unreachable: ${known?.cause} (${code}). ${known?.remedy} Then retry.`,
      )
    },
  )

  it('names where a connection was to go, and the addresses that were tried, each once', () => {
    const tried = (address: string) => Object.assign(new Error('x'), { code: 'ECONNREFUSED', address, port: 9 })
    const both = Object.assign(new AggregateError([tried('::1'), tried('127.0.0.1')]), { code: 'ECONNREFUSED' })
    const at = 'http://localhost:9'
    expect(explain(new Failure('backend_unreachable', { cause: both, at })).cause).toBe(
      'connection refused: no server listens at this host and port: http://localhost:9, [::1]:9, 127.0.0.1:9 (ECONNREFUSED)',
    )
    const cause = new OutboundError('unreachable', { cause: tried('127.0.0.1'), at: 'http://127.0.0.1:9' })
    expect(explain(new Failure('sts_unavailable', { detail: 'STS: unreachable', cause })).cause).toBe(
      'STS: unreachable: connection refused: no server listens at this host and port: http://127.0.0.1:9 (ECONNREFUSED)',
    )
    // Through an egress proxy, whose address this is.
    const proxied = new OutboundError('unreachable', { cause: tried('10.0.0.1'), at: 'https://mcp.example.com' })
    expect(explain(new Failure('backend_unreachable', { cause: proxied })).cause).toContain(
      ': https://mcp.example.com, 10.0.0.1:9 (',
    )
  })

  it('names the limit that was reached', () => {
    const detail = 'more than 60 requests a minute from one network (embeddedAuthServer.limits)'
    expect(explain(new Failure('rate_limited', { detail })).cause).toBe(detail)
  })
})
