import { describe, expect, test } from 'vitest'
import { ANONYMOUS, Failure, NO_CREDENTIAL, type Armed, type Known, type Obtain } from '../../../../src/core/index.ts'
import { createDecisionLog, createCloudStsSource, type RouteDecisions } from '../../../../src/obtain/cloud-sts/index.ts'
import { authOf, callerOf, depsOf } from '../../../support/obtain/cloud-sts/support/deps.ts'

const ROLE = 'arn:aws:iam::123456789012:role/r'
const known = (caller: Known['caller'], id: string) => ({ matched: { inbound: { id } }, caller }) as unknown as Known

/** An obtain stage that plans like the real one: once per caller. */
function stage(decisions: RouteDecisions): Obtain {
  const { deps } = depsOf('http://127.0.0.1:1', { decisions })
  const source = createCloudStsSource(authOf({ roleMappings: [{ roleArn: ROLE, claim: 'a' }] }), deps)
  const planned = new WeakSet<object>()
  return decisions.recording({
    obtain(one) {
      const { caller } = one
      if (caller.kind === 'authenticated' && !planned.has(caller)) {
        planned.add(caller)
        source.plan(caller)
      }
      return { known: one, credential: NO_CREDENTIAL } as Armed
    },
    lookup: () => ({ from: 'config' }),
    reject: () => false,
  })
}

describe('the record of decisions', () => {
  test('has one line per request, warm ones included, newest first', () => {
    const log = createDecisionLog({ clock: { now: () => 7 } })
    const obtain = stage(log.forRoute('github'))
    const alice = callerOf({ sub: 'alice', groups: ['a'] })
    for (const id of ['1', '2', '3']) obtain.obtain(known(alice, id)) as unknown
    const lines = log.list()
    expect(lines.map(({ requestId, route, atMs }) => [requestId, route, atMs])).toEqual([
      ['3', 'github', 7],
      ['2', 'github', 7],
      ['1', 'github', 7],
    ])
    expect(lines[0]?.decision).toBe(lines[2]?.decision)
    expect(lines[0]?.decision).toMatchObject({
      config: 'default/backend',
      refusal: undefined,
      // Its name is made of a claim.
      session: { changes: [] },
    })
  })

  test('has refused requests, and why', () => {
    const log = createDecisionLog({ clock: { now: () => 7 } })
    const obtain = stage(log.forRoute('github'))
    expect(() => obtain.obtain(known(callerOf({ sub: 'bob', groups: [] }), '1')) as unknown).toThrow(Failure)
    expect(log.list()[0]?.decision).toMatchObject({
      refusal: 'no_role',
      choice: { steps: [{ outcome: 'not_matched' }] },
    })
  })

  test('keeps the last 200', () => {
    const log = createDecisionLog({ clock: { now: () => 7 } })
    const obtain = stage(log.forRoute('github'))
    const alice = callerOf({ sub: 'alice', groups: ['a'] })
    for (let id = 1; id <= 450; id++) obtain.obtain(known(alice, String(id))) as unknown
    expect(log.list().map(({ requestId }) => Number(requestId))).toEqual(
      Array.from({ length: 200 }, (_, index) => 450 - index),
    )
  })

  test('keeps routes apart that share a caller', () => {
    const log = createDecisionLog({ clock: { now: () => 7 } })
    const [one, two] = [stage(log.forRoute('one')), stage(log.forRoute('two'))]
    const alice = callerOf({ sub: 'alice', groups: ['a'] })
    one.obtain(known(alice, '1')) as unknown
    two.obtain(known(alice, '2')) as unknown
    expect(log.list().map(({ route }) => route)).toEqual(['two', 'one'])
    expect(log.list()[0]?.decision).not.toBe(log.list()[1]?.decision)
  })

  test.each([
    [false, undefined],
    [true, 'do-not-show'],
  ])('shows claims only if configured: %s', (showClaims, secret) => {
    const log = createDecisionLog({ clock: { now: () => 7 }, showClaims })
    const obtain = stage(log.forRoute('github'))
    obtain.obtain(known(callerOf({ sub: 'alice', groups: ['a'], secret: 'do-not-show' }), '1')) as unknown
    expect(log.list()[0]?.claims?.['secret']).toBe(secret)
    expect(JSON.stringify(log.list()).includes('do-not-show')).toBe(showClaims)
    // The session name is made of a claim.
    expect(JSON.stringify(log.list()).includes('alice')).toBe(showClaims)
  })

  test('has nothing of anonymous callers', () => {
    const log = createDecisionLog({ clock: { now: () => 7 } })
    stage(log.forRoute('open')).obtain(known(ANONYMOUS, '1')) as unknown
    expect(log.list()).toEqual([])
  })
})
