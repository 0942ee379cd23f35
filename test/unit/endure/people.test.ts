import { expect, it } from 'vitest'
import { createPeople, outcomeFor } from '../../../endure/callers/people.ts'
import { judge, promptIn } from '../../../endure/oracle/judge.ts'
import { createRandom } from '../../../endure/random.ts'
import { callOf, outcomeOf, result, shownTo } from '../../support/endure/calls.ts'

const LINK = `http://127.0.0.1:8080/connect/${'A'.repeat(32)}`
const NEEDS = ['provider', 'workspace', 'store', 'replica', 'clock'] as const
const text = outcomeOf({
  text: result('c1.0-a', { content: [{ type: 'text', text: `Open ${LINK} now.` }], isError: true }),
})
const asked = outcomeOf({
  text: result('c1.0-a', {
    resultType: 'input_required',
    inputRequests: { connect_account: { method: 'elicitation/create', params: { mode: 'url', url: LINK } } },
    requestState: 'sealed',
  }),
})

it('finds the link in an answer', () => {
  expect(promptIn(text)).toEqual({ link: LINK, state: undefined })
  expect(promptIn(asked)).toEqual({ link: LINK, state: 'sealed' })
  expect(promptIn(outcomeOf())).toBeUndefined()
  expect(promptIn(outcomeOf({ text: result('c1.0-a', { content: [{ text: LINK }] }) }))).toBeUndefined()
})

it('evaluates who is served without a connection, and who is asked with one', () => {
  const prompt = (orServed: boolean) => callOf({ expectation: { kind: 'prompt', orServed } })
  for (const outcome of [text, asked]) {
    expect(judge(prompt(false), outcome, [])).toBeUndefined()
    expect(judge(prompt(true), outcome, [])).toBeUndefined()
    expect(judge(callOf(), outcome, [])?.[0]).toBe("another caller's answer")
  }
  expect(judge(prompt(false), outcomeOf(), [])?.[0]).toBe('served who must be refused')
  expect(judge(prompt(true), outcomeOf(), [])).toBeUndefined()
  expect(judge(prompt(true), outcomeOf({ text: shownTo('c1.0-a', 'c2.0-b') }), [])?.[0]).toBe("another caller's answer")
})

it('knows what a person must get', () => {
  const fault = { name: 'x', parts: ['workspace'], clock: undefined, from: 1_000, until: 2_000 } as const
  const failover = { ...fault, parts: ['store'] } as const
  const at = (
    is: 'absent' | 'present' | 'unknown',
    since: number,
    now: number,
    spans: (typeof fault | typeof failover)[] = [],
  ) => outcomeFor({ is, since }, NEEDS, spans, now)
  const [either, prompt, own] = [
    { kind: 'prompt', orServed: true },
    { kind: 'prompt', orServed: false },
    { kind: 'own request' },
  ]
  expect(at('unknown', 0, 1)).toEqual(either)
  expect(at('absent', -Infinity, 1)).toEqual(prompt)
  expect(at('absent', 0, 2_000)).toEqual(either)
  expect(at('absent', 0, 3_000)).toEqual(prompt)
  expect(at('absent', 0, 3_000, [fault])).toEqual(prompt)
  expect(at('absent', 0, 3_000, [failover])).toEqual(either)
  expect(at('present', 0, 100_000)).toEqual(own)
  expect(at('present', 0, 100_000, [fault])).toEqual(either)
  expect(at('present', 0, 150_000)).toEqual(either)
  expect(at('present', 0, 156_000)).toEqual(prompt)
  expect(at('present', 0, 156_000, [failover])).toEqual(either)
})

it('gives each person to one caller at a time', () => {
  const people = createPeople(['a', 'b'], { revoke: () => undefined, disconnect: () => Promise.resolve() })
  const random = createRandom('people')
  const [one, other] = [people.take(random), people.take(random)]
  expect(new Set([one?.subject, other?.subject])).toEqual(new Set(['a', 'b']))
  expect(people.take(random)).toBeUndefined()
  if (one !== undefined) people.giveBack(one)
  expect(people.take(random)).toBe(one)
})
