import { describe, expect, it } from 'vitest'
import { createRenderer, eventOfNotice, type AuditEvent } from '../../../src/audit/event.ts'
import { maskedArguments } from '../../../src/audit/request-trace.ts'
import { RefusalSummaries, type RefusalSummary } from '../../../src/audit/refusal-summary.ts'
import { type Claims, SecretMask } from '../../../src/core/index.ts'
import { START_MS } from '../../support/ports.ts'

const CALL: AuditEvent = {
  type: 'mcp_tool_call',
  atMs: START_MS,
  outcome: 'denied',
  client: '192.0.2.7',
  claims: {
    sub: 'u-1',
    name: 'Ada',
    client_id: 'agent',
    act: { sub: 'outer', act: { client_id: 'inner' } },
  },
  component: 'github',
  target: { type: 'tool', endpoint: '/github', method: 'tools/call', name: 'delete_repo' },
  credential: {
    type: 'tokenExchange',
    config: 'default/github',
    configHash: '0123456789abcdef',
    audience: 'https://api.example.com',
    source: 'cache',
    fingerprint: 'fedcba9876543210',
  },
  decision: { rule: 'readers', allowed: false },
  extra: { requestId: 'r1', status: 403, reason: 'not_allowed', durationMs: 3 },
}
const rendered = (format: 'toolhive' | 'ocsf', event: AuditEvent): Record<string, unknown> => {
  const line = createRenderer({ format, version: '9.9.9' })(event)
  expect(line.indexOf('\n')).toBe(line.length - 1)
  return JSON.parse(line) as Record<string, unknown>
}

describe('audit events', () => {
  it('have the fields of ToolHive, with the credential and the decision', () => {
    expect(rendered('toolhive', CALL)).toEqual({
      metadata: {
        auditId: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
        extra: { requestId: 'r1', status: 403, reason: 'not_allowed', durationMs: 3 },
      },
      type: 'mcp_tool_call',
      loggedAt: '2027-01-15T08:00:00.000Z',
      source: { type: 'network', value: '192.0.2.7' },
      outcome: 'denied',
      subjects: { user: 'Ada', user_id: 'u-1', client_name: 'agent' },
      delegation: { chain: ['outer', 'inner'] },
      component: 'github',
      target: CALL.target,
      credential: CALL.credential,
      decision: CALL.decision,
    })
  })

  it('are API Activity of OCSF 1.6', () => {
    expect(rendered('ocsf', CALL)).toMatchObject({
      metadata: { version: '1.6.0', product: { version: '9.9.9' } },
      time: START_MS,
      class_uid: 6003,
      category_uid: 6,
      activity_id: 99,
      type_uid: 600_399,
      severity_id: 2,
      status_id: 2,
      status_detail: 'not_allowed',
      actor: { user: { name: 'Ada', uid: 'u-1' }, app_name: 'agent' },
      api: { operation: 'tools/call', request: { uid: 'r1' }, service: { name: 'github' } },
      src_endpoint: { ip: '192.0.2.7' },
      resources: [{ name: 'delete_repo', type: 'tool' }],
      unmapped: { event: 'mcp_tool_call', credential: CALL.credential, decision: CALL.decision },
    })
    expect(rendered('ocsf', { ...CALL, type: 'mcp_tools_list' })).toMatchObject({ activity_id: 2, type_uid: 600_302 })
  })

  it.each([
    ['account_connected', 1],
    ['account_replaced', 3],
    ['account_disconnected', 4],
    ['account_broken', 99],
    ['connect_refused', 99],
  ] as const)('of connected accounts name person and provider: %s', (type, activity) => {
    const notice = {
      type,
      outcome: 'success',
      component: 'connections',
      userId: 'alice',
      target: { type: 'connection', name: 'github' },
      details: { issuer: 'https://idp.example.com' },
    } as const
    const event = eventOfNotice(notice, START_MS)
    expect(rendered('toolhive', event)).toMatchObject({
      type,
      metadata: { extra: { issuer: 'https://idp.example.com' } },
      subjects: { user: 'alice', user_id: 'alice' },
      component: 'connections',
      target: { type: 'connection', name: 'github' },
    })
    expect(rendered('ocsf', event)).toMatchObject({
      class_uid: 6003,
      activity_id: activity,
      type_uid: 600_300 + activity,
      actor: { user: { uid: 'alice' } },
      resources: [{ name: 'github', type: 'connection' }],
      unmapped: { event: type, issuer: 'https://idp.example.com' },
    })
  })

  it('of logins are Authentication of OCSF', () => {
    const notice = {
      type: 'login',
      outcome: 'success',
      component: 'default/login',
      client: '192.0.2.7',
      userId: 'u-1',
      clientId: 'c-1',
    } as const
    expect(rendered('ocsf', eventOfNotice(notice, START_MS))).toMatchObject({
      class_uid: 3002,
      category_uid: 3,
      activity_id: 1,
      type_uid: 300_201,
      user: { name: 'u-1', uid: 'u-1' },
      service: { name: 'default/login' },
    })
  })

  it('cut long texts of tokens', () => {
    const { subjects } = rendered('toolhive', { ...CALL, claims: { sub: 'x'.repeat(9_000) } }) as {
      subjects: { user_id: string }
    }
    expect(subjects.user_id).toHaveLength(256)
  })
})

describe('recorded arguments', () => {
  const masked = (args: Claims) => maskedArguments(args, new SecretMask())

  it('mask fields that are named like secrets, at any depth, and texts that look like tokens', () => {
    const args = { repo: 'a', dbPassword: 'hunter2', nested: [{ api_key: { id: 1 } }], note: 'ghp_0123456789abcdef' }
    expect(masked(args)).toEqual({
      repo: 'a',
      dbPassword: '[masked]',
      nested: [{ api_key: '[masked]' }],
      note: '[masked]',
    })
  })

  it('are left out over 1 KiB', () => {
    expect(masked({ text: 'x'.repeat(2_000) })).toEqual({ omitted: '2011 bytes, more than 1024' })
  })
})

describe('summaries of 401s', () => {
  it('begin after the first ten of an address in a second, and count the others', () => {
    const reported: RefusalSummary[] = []
    const summaries = new RefusalSummaries((one) => void reported.push(one))
    const single = Array.from({ length: 25 }, (_, at) => summaries.isSingle('192.0.2.1', START_MS + at))
    expect(single.filter(Boolean)).toHaveLength(10)
    expect(summaries.isSingle('192.0.2.2', START_MS + 30)).toBe(true)
    expect(reported).toEqual([])
    expect(summaries.isSingle('192.0.2.1', START_MS + 1_000)).toBe(true)
    expect(reported).toEqual([{ client: '192.0.2.1', repeated: 15, firstAtMs: START_MS + 10, lastAtMs: START_MS + 24 }])
    summaries.flush()
    expect(reported).toHaveLength(1)
  })
})
