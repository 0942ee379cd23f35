import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { Call } from '../../../endure/oracle/call.ts'
import { createMarks } from '../../../endure/oracle/marks.ts'
import { createWitness, type Seen } from '../../../endure/oracle/witness.ts'
import { callOf, outcomeOf } from '../../support/endure/calls.ts'

const seenOf = (changes: Partial<Seen> = {}): Seen => ({
  method: 'POST',
  mount: '/token-exchange',
  headers: ['Host', 'x', 'X-Endure-Call', 'c1.0-a', 'Authorization', 'Bearer exchanged-for-the-caller'],
  body: Buffer.from('{}'),
  verified: { claims: { sub: 'c1.0' } },
  ...changes,
})

function watch(call: Call = callOf(), spans: Parameters<typeof createWitness>[2] = [], now = 1_050) {
  const found: string[] = []
  const marks = createMarks()
  const witness = createWitness({ add: (kind) => void found.push(kind) }, marks, spans, () => now)
  witness.expect(call)
  return { call, found, marks, witness }
}

describe('the witness at the backend', () => {
  it('has nothing to say of a request that is as it must be, and knows its credential from then on', () => {
    const { call, found, marks, witness } = watch()
    witness.see(seenOf())
    witness.settle(call, outcomeOf())
    expect(found).toEqual([])
    expect(marks.find('{"detail":"got exchanged-for-the-caller"}')).toEqual(['credential for /token-exchange'])
  })

  it('finds a call that must only be asked to connect an account, and reaches the backend', () => {
    for (const [orServed, expected] of [
      [false, ['served who must be refused']],
      [true, []],
    ] as const) {
      const { found, witness } = watch(callOf({ isUnsafe: false, expectation: { kind: 'prompt', orServed } }))
      // Refused by the backend.
      witness.see(seenOf({ verified: undefined }))
      expect(found).toEqual([])
      witness.see(seenOf())
      expect(found).toEqual(expected)
    }
  })

  it('knows of a signed request its signature, and no words of the protocol', () => {
    const { marks, witness } = watch()
    const signed =
      'AWS4-HMAC-SHA256 Credential=ASIAX/20260101/r/s/aws4_request, SignedHeaders=mcp-protocol-version, Signature='
    const signature = 'ab'.repeat(32)
    witness.see(seenOf({ headers: ['X-Endure-Call', 'c1.0-a', 'Authorization', signed + signature] }))
    expect(marks.find('mcp-protocol-version: 2026-07-28')).toEqual([])
    expect(marks.find(`signature ${signature}`)).toEqual(['credential for /token-exchange'])
  })

  it('accepts no expired token, except at a replica whose clock was set back', () => {
    const ended = callOf({ refusal: ['401 expired_token'], tokenEndedAt: -59_000 })
    const back = { name: 'clock', parts: [], clock: { replica: 'replica-2', byMs: -90_000 }, from: 0, until: 2_000 }
    const planted = watch(ended)
    planted.witness.see(seenOf())
    const late = watch(callOf({ ...ended, startedAt: 2_001 }), [back], 2_100)
    late.witness.see(seenOf())
    const excused = watch(ended, [back])
    excused.witness.see(seenOf())
    expect([planted.found, late.found, excused.found]).toEqual([
      ['served who must be refused'],
      ['served who must be refused'],
      [],
    ])
  })

  it('does not count what the backend refused: it was not done', () => {
    const { found, witness } = watch()
    witness.see(seenOf({ verified: undefined }))
    witness.see(seenOf())
    expect(found).toEqual([])
  })

  it.each<[string, string, Seen, Partial<Call>]>([
    ["another caller's credential", 'wrong credential', seenOf({ verified: { claims: { sub: 'c2.0' } } }), {}],
    ['no credential', 'wrong credential', seenOf({ verified: {} }), {}],
    ['another backend', 'wrong credential', seenOf({ mount: '/bearer-token' }), {}],
    [
      'a credential where none is due',
      'wrong credential',
      seenOf(),
      { expected: { verified: {}, hasCredential: false } },
    ],
    [
      'a header of before',
      'wrong credential',
      seenOf({ headers: ['X-Endure-Call', 'c1.0-a', 'X-Api-Key', 'old'] }),
      {
        expected: {
          verified: {},
          hasCredential: false,
          header: { name: 'x-api-key', isGood: (value) => value === 'new' },
        },
      },
    ],
    [
      "the caller's own token",
      'leaked secret',
      seenOf({ headers: ['X-Endure-Call', 'c1.0-a', 'X-Old', `Bearer ${callOf().token}`] }),
      {},
    ],
    ['who has no right', 'served who must be refused', seenOf(), { refusal: ['401 invalid_token'] }],
    [
      'another body',
      'other body than was sent',
      seenOf(),
      { digest: createHash('sha256').update('{"a":1}').digest('hex') },
    ],
    ['a request of an unknown caller', 'doubled unsafe request', seenOf({ headers: ['X-Endure-Call', 'c9.9-z'] }), {}],
  ])('finds %s', (_what, kind, seen, changes) => {
    const { found, witness } = watch(callOf(changes))
    witness.see(seen)
    expect(found).toEqual([kind])
  })

  it('finds an unsafe request that is done twice, also after its answer, and one that is answered and never came', () => {
    const twice = watch()
    twice.witness.see(seenOf())
    twice.witness.settle(twice.call, outcomeOf())
    twice.witness.see(seenOf())
    expect(twice.found).toEqual(['doubled unsafe request'])
    for (const status of [200, 202]) {
      const lost = watch()
      lost.witness.settle(lost.call, outcomeOf({ status }))
      expect(lost.found).toEqual(['lost unsafe request'])
    }
    const refused = watch()
    refused.witness.settle(refused.call, outcomeOf({ status: 503 }))
    expect(refused.found).toEqual([])
  })

  it('forgets what was settled long ago, and nothing else', () => {
    const { call, witness } = watch()
    witness.expect(callOf({ id: 'open' }))
    witness.settle(call, outcomeOf({ endedAt: 1_000 }))
    witness.forget(1_001)
    expect(witness.open).toBe(1)
  })
})
