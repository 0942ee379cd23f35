import { describe, expect, it } from 'vitest'
import type { Call, Outcome } from '../../../endure/oracle/call.ts'
import { createFaultLog, EXCUSES, type FaultSpan, type Part } from '../../../endure/oracle/excuses.ts'
import { judge, mayBeServedBy } from '../../../endure/oracle/judge.ts'
import { callOf, events, outcomeOf, refusal, result, shownTo } from '../../support/endure/calls.ts'

const found = (call: Call, outcome: Outcome, parts: readonly Part[] = []): string | undefined =>
  judge(call, outcome, parts.length === 0 ? [] : [{ name: 'a fault', parts, from: 900, until: undefined }])?.[0]

const progress = (token: string, step: number): string =>
  JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: token, progress: step } })
const done = result('c1.0-a', { content: [{ type: 'text', text: '2 steps done' }] })
const steps = callOf({ expectation: { kind: 'steps', steps: 2 } })

describe('an answer that is right', () => {
  it.each<[string, Call, Outcome]>([
    ['shows the own request', callOf(), outcomeOf()],
    ['comes as events', callOf(), outcomeOf(events(shownTo('c1.0-a')))],
    ['has all steps', steps, outcomeOf(events(progress('c1.0-a', 1), progress('c1.0-a', 2), done))],
    [
      'has all servers',
      callOf({ expectation: { kind: 'servers', names: ['a'] } }),
      outcomeOf({ text: JSON.stringify({ servers: [{ server: { name: 'a' } }] }) }),
    ],
    [
      'has all bytes',
      callOf({ expectation: { kind: 'bytes', bytes: 18 } }),
      outcomeOf({ text: result('c1.0-a', { content: [{ type: 'text', text: '0123456789abcdef01' }] }) }),
    ],
    [
      'refuses what the backend refused because the caller wanted it',
      callOf({ expectation: { kind: 'refusal', reasons: ['502 backend_rejected_credential'] } }),
      refusal(502, 'backend_rejected_credential'),
    ],
    ['refuses who must be refused', callOf({ refusal: ['401 missing_token'] }), refusal(401, 'missing_token')],
  ])('%s', (_what, call, outcome) => {
    expect(found(call, outcome)).toBeUndefined()
  })
})

describe('a planted defect is found:', () => {
  it.each<[string, string, Call, Outcome]>([
    [
      "another caller's request is shown",
      "another caller's answer",
      callOf(),
      outcomeOf({ text: shownTo('c1.0-a', 'c2.0-b') }),
    ],
    ["another caller's answer", "another caller's answer", callOf(), outcomeOf({ text: shownTo('c2.0-b') })],
    ["another caller's progress", "another caller's answer", steps, outcomeOf(events(progress('c2.0-b', 1), done))],
    [
      'a refusal of the backend is served',
      "another caller's answer",
      callOf({ expectation: { kind: 'refusal', reasons: ['502 backend_rejected_credential'] } }),
      outcomeOf(),
    ],
    [
      'others are refused for the credential that one had refused',
      'refused without a reason',
      callOf(),
      refusal(502, 'backend_rejected_credential'),
    ],
    ['a step is missing', 'torn answer that looks whole', steps, outcomeOf(events(progress('c1.0-a', 1), done))],
    [
      'steps come twice',
      'torn answer that looks whole',
      steps,
      outcomeOf(events(...[1, 2, 2].map((at) => progress('c1.0-a', at)), done)),
    ],
    [
      'the result of a stream is missing',
      'torn answer that looks whole',
      steps,
      outcomeOf(events(progress('c1.0-a', 1))),
    ],
    [
      'the last event is cut in the middle',
      'torn answer that looks whole',
      callOf(),
      outcomeOf({ ...events(), text: `data: ${shownTo('c1.0-a')}` }),
    ],
    ['half of the JSON', 'torn answer that looks whole', callOf(), outcomeOf({ text: shownTo('c1.0-a').slice(0, 40) })],
    ['nothing', 'torn answer that looks whole', callOf(), outcomeOf({ text: '' })],
    [
      'a server is missing in a list',
      'torn answer that looks whole',
      callOf({ expectation: { kind: 'servers', names: ['a', 'b'] } }),
      outcomeOf({ text: JSON.stringify({ servers: [{ server: { name: 'a' } }] }) }),
    ],
    [
      'bytes are missing',
      'torn answer that looks whole',
      callOf({ expectation: { kind: 'bytes', bytes: 18 } }),
      outcomeOf({ text: result('c1.0-a', { content: [{ type: 'text', text: '0123456789abcdef0' }] }) }),
    ],
    [
      'who has no right is served',
      'served who must be refused',
      callOf({ refusal: ['401 invalid_token'] }),
      outcomeOf(),
    ],
    [
      'refused, and nothing is broken',
      'refused without a reason',
      callOf(),
      refusal(503, 'identity_provider_unavailable', { 'retry-after': '1' }),
    ],
    [
      'refused otherwise than due',
      'refused without a reason',
      callOf({ refusal: ['401 invalid_token'] }),
      refusal(500, 'internal_error'),
    ],
    ['cut, and nothing is broken', 'answer cut without a reason', callOf(), outcomeOf({ cut: 'ECONNRESET' })],
    ['late, and nothing is broken', 'late answer', callOf(), outcomeOf({ endedAt: 42_000 })],
    ['no head, and nothing is broken', 'late answer', callOf(), outcomeOf({ status: 0, endedAt: 12_000 })],
  ])('%s', (_what, kind, call, outcome) => {
    expect(found(call, outcome)).toBe(kind)
  })
})

describe('a fault', () => {
  const unavailable = refusal(503, 'identity_provider_unavailable', { 'retry-after': '2' })

  it('excuses the refusals that it must lead to, with Retry-After, and no other', () => {
    expect(found(callOf(), unavailable, ['provider'])).toBeUndefined()
    expect(found(callOf(), refusal(503, 'identity_provider_unavailable'), ['provider'])).toBe(
      'refusal without Retry-After',
    )
    expect(found(callOf(), refusal(401, 'invalid_token'), ['provider'])).toBe('refused without a reason')
    expect(found(callOf(), refusal(500, 'internal_error'), ['provider'])).toBe('refused without a reason')
    expect(found(callOf(), outcomeOf({ cut: 'ECONNRESET' }), ['provider'])).toBe('answer cut without a reason')
    expect(found(callOf(), outcomeOf({ cut: 'ECONNRESET' }), ['backend'])).toBeUndefined()
    expect(found(callOf(), outcomeOf({ endedAt: 42_000 }), ['backend'])).toBeUndefined()
  })

  it('excuses no caller that does not need the broken service, and serves no unauthorized caller', () => {
    expect(found(callOf({ needs: ['backend'] }), unavailable, ['provider'])).toBe('refused without a reason')
    for (const part of Object.keys(EXCUSES) as Part[])
      expect(found(callOf({ refusal: ['401 invalid_token'] }), outcomeOf(), [part])).toBe('served who must be refused')
  })

  it("excuses, when the proxy's own client is throttled, who needs its own token, and no exchange", () => {
    const own = callOf({ needs: ['provider', 'own token'] })
    expect([found(own, unavailable, ['own token']), found(callOf(), unavailable, ['own token'])]).toEqual([
      undefined,
      'refused without a reason',
    ])
  })

  it('excuses, when STS takes back keys, one refusal of those that all callers share, and none of their own', () => {
    const taken = ['own keys', 'hub keys'] as const
    const refused = refusal(503, 'aws_identity_unavailable', { 'retry-after': '1' })
    const ofBackend = refusal(403, '')
    const at = (needs: readonly Part[], outcome: Outcome) => found(callOf({ needs }), outcome, taken)
    expect([at(['hub keys'], refused), at(['own keys'], ofBackend)]).toEqual([undefined, undefined])
    expect([at(['hub keys'], ofBackend), at(['sts'], refused)]).toEqual([
      'refused without a reason',
      'refused without a reason',
    ])
  })

  it('excuses, when a replica is asked to end, no answer that has begun and is cut before its time', () => {
    const cut = (status: number, endedAt: number) =>
      found(callOf({ needs: ['drain'] }), outcomeOf({ cut: 'ECONNRESET', status, endedAt }), ['drain'])
    expect(cut(200, 1_900)).toBe('answer cut without a reason')
    expect([cut(0, 1_900), cut(200, 6_100)]).toEqual([undefined, undefined])
  })

  it('may lose the answer to the end of a session, which is then done already when it is repeated', () => {
    const gone = outcomeOf({
      status: 404,
      text: JSON.stringify({ error: { code: -32000, message: 'Session not found' } }),
    })
    const ending = callOf({ endsSession: true, needs: ['backend', 'sts'] })
    expect(found(ending, gone, ['backend'])).toBeUndefined()
    expect([found(ending, gone), found(ending, gone, ['sts']), found(callOf({}), gone, ['backend'])]).toEqual(
      Array.from({ length: 3 }, () => 'refused without a reason'),
    )
  })

  it('excuses for its grace after its end, and no longer', () => {
    let now = 0
    const log = createFaultLog(() => now)
    const span = log.begin('identity provider down', ['provider'])
    now = 5_000
    log.end(span)
    const at = (startedAt: number) =>
      judge(callOf({ startedAt }), { ...unavailable, endedAt: startedAt + 100 }, log.spans)?.[0]
    const { graceMs } = EXCUSES.provider
    expect(at(5_000 + graceMs)).toBeUndefined()
    expect(at(5_001 + graceMs)).toBe('refused without a reason')
    expect(log.names()).toEqual(['identity provider down'])
    now = 5_001 + graceMs
    expect(log.names()).toEqual([])
  })
})

describe('revoked credentials', () => {
  const back: FaultSpan = { name: 'sts takes back what it issued', parts: [], from: 100_000, until: 101_000 }
  const expired = outcomeOf({ status: 403, text: '{"__type":"ExpiredTokenException"}', endedAt: 100_600 })
  const at = (callerSince: number, outcome = expired, startedAt = 100_500) =>
    judge(callOf({ callerSince, startedAt }), { ...outcome, endedAt: startedAt + 100 }, [back])?.[0]

  it('may be used only by a request that has just started', () => {
    expect(at(99_000)).toBeUndefined()
    expect(at(94_000)).toBe('refused without a reason')
    expect(at(99_000, expired, 103_500)).toBe('refused without a reason')
    expect(at(99_000, refusal(401, 'invalid_token'))).toBe('refused without a reason')
  })
})

describe('a clock that was set back', () => {
  const back: FaultSpan = {
    name: 'clock of a replica -90 s',
    parts: ['clock'],
    clock: { replica: 'replica-2', byMs: -90_000 },
    from: 100_000,
    until: 110_000,
  }
  const ended = (agoMs: number, startedAt = 105_000): Call =>
    callOf({ refusal: ['401 expired_token'], startedAt, tokenEndedAt: startedAt - agoMs })
  const servedAt = (call: Call, spans: readonly FaultSpan[] = [back]): string | undefined =>
    judge(call, { ...outcomeOf(), endedAt: call.startedAt + 100 }, spans)?.[0]

  it('makes a token good again that had ended less long ago, at that replica', () => {
    expect(servedAt(ended(60_000))).toBeUndefined()
    expect(mayBeServedBy(ended(60_000), 105_100, [back])).toBe('replica-2')
  })

  it.each<[string, Call, readonly FaultSpan[]]>([
    ['one that ended longer ago', ended(96_000), [back]],
    ['one that was sent after it was right again', ended(60_000, 110_001), [back]],
    ['one that was answered before', ended(60_000, 99_800), [back]],
    ['one that never was good', callOf({ refusal: ['401 invalid_token'], startedAt: 105_000 }), [back]],
    [
      'one at a clock that was set forward',
      ended(60_000),
      [{ ...back, clock: { replica: 'replica-2', byMs: 90_000 } }],
    ],
    ['one under another fault', ended(60_000), [{ ...back, clock: undefined }]],
  ])('excuses no other: %s', (_what, call, spans) => {
    expect(servedAt(call, spans)).toBe('served who must be refused')
    expect(mayBeServedBy(call, call.startedAt + 100, spans)).toBeUndefined()
  })

  it('excuses no answer that is not its own', () => {
    const foreign = { ...outcomeOf({ text: shownTo('c1.0-a', 'c2.0-b') }), endedAt: 105_100 }
    expect(judge(ended(60_000), foreign, [back])?.[0]).toBe("another caller's answer")
  })
})
