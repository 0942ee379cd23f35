import { describe, expect, it } from 'vitest'
import { OutboundError } from '../../../src/core/index.ts'
import { type CallOutcome, createCircuit } from '../../../src/net/circuit.ts'
import { createManualClock, monotonicOf } from '../../support/ports.ts'

/** A circuit with a clock of its own, and what became of it. */
function open() {
  const clock = createManualClock()
  const states: number[] = []
  const circuit = createCircuit({ clock: monotonicOf(clock), onState: (state) => states.push(state) })
  /** A call, from start to end. */
  const call = (outcome: CallOutcome, source?: string, token?: string) => circuit.begin(source, token)(outcome)
  const calls = (
    count: number,
    outcome: CallOutcome,
    source: (index: number) => string | undefined,
    token: (index: number) => string | undefined = () => undefined,
  ) => {
    for (let index = 0; index < count; index++) call(outcome, source(index), token(index))
  }
  /** Seconds to wait, or 0 when a call may go. */
  const wait = (source?: string): number => {
    try {
      circuit.check(source)
      return 0
    } catch (error) {
      if (error instanceof OutboundError && error.kind === 'breaker_open') return error.retryAfterSeconds ?? -1
      throw error
    }
  }
  return { clock, states, circuit, call, calls, wait }
}

const each = (index: number) => `caller ${index}`

describe('a circuit opens', () => {
  it('after five calls in a row that could not be sent, from any callers', () => {
    const { calls, wait, states } = open()
    calls(4, 'no_connection', () => 'alice')
    calls(1, 'answered', () => 'alice')
    calls(4, 'no_connection', () => 'alice')
    expect(wait()).toBe(0)
    calls(1, 'no_connection', () => 'alice')
    expect(wait()).toBe(1)
    expect(states).toEqual([1])
  })

  it('but not by calls that were sent before it closed the last time', () => {
    const { circuit, clock, call, calls, wait } = open()
    const before = Array.from({ length: 20 }, (_, index) => circuit.begin(each(index)))
    calls(5, 'no_connection', each)
    expect(wait()).toBe(1)
    clock.advance(1_000)
    call('answered', 'probe')
    for (const end of before) end('no_answer')
    expect(wait()).toBe(0)
    calls(5, 'no_connection', each)
    expect(wait()).toBe(1)
  })

  it('after five in a row without an answer, those of one source counted once', () => {
    const { calls, wait } = open()
    calls(50, 'no_answer', () => 'mallory')
    expect(wait()).toBe(0)
    calls(3, 'no_answer', each)
    expect(wait()).toBe(0)
    calls(1, 'no_answer', () => 'another')
    expect(wait()).toBe(1)
  })

  it('by 5xx when they are half of twenty answers from five sources', () => {
    const { calls, wait } = open()
    calls(10, 'answered', each)
    calls(9, 'server_error', each)
    expect(wait()).toBe(0)
    calls(1, 'server_error', each)
    expect(wait()).toBe(1)
  })

  it.each<[string, number, number, (index: number) => string]>([
    ['fewer than twenty answers', 0, 19, each],
    ['fewer than half', 100, 99, each],
    ['fewer than five sources', 0, 500, (index) => `caller ${index % 4}`],
  ])('by no 5xx from %s', (_what, good, bad, source) => {
    const { calls, wait } = open()
    calls(good, 'answered', source)
    calls(bad, 'server_error', source)
    expect(wait()).toBe(0)
  })

  it('by 502, 503 and 504 for the tokens of one source', () => {
    const { calls, wait } = open()
    calls(20, 'unavailable', () => 'one address')
    expect(wait()).toBe(0)
    const other = open()
    other.calls(
      19,
      'unavailable',
      () => 'one address',
      (index) => `token ${index % 5}`,
    )
    expect(other.wait()).toBe(0)
    other.calls(
      1,
      'unavailable',
      () => 'one address',
      () => 'token 1',
    )
    expect(other.wait()).toBe(1)
  })

  it('by no 5xx of more than ten seconds ago', () => {
    const { clock, calls, wait } = open()
    calls(15, 'server_error', each)
    clock.advance(10_001)
    calls(15, 'server_error', each)
    expect(wait()).toBe(0)
    calls(5, 'server_error', each)
    expect(wait()).toBe(1)
  })

  it('by nothing that we gave up ourselves', () => {
    const { calls, wait } = open()
    calls(100, 'not_made', each)
    expect(wait()).toBe(0)
  })
})

describe('an open circuit', () => {
  const opened = () => {
    const made = open()
    made.calls(5, 'no_connection', each)
    return made
  }

  it('lets one probe through each second, and the first that is answered closes it', () => {
    const { clock, circuit, call, wait, states } = opened()
    clock.advance(999)
    expect(wait()).toBe(1)
    clock.advance(1)
    expect(wait()).toBe(0)
    const end = circuit.begin('one')
    expect(wait('two')).toBe(1)
    end('no_connection')
    expect(wait('two')).toBe(1)
    clock.advance(1000)
    call('answered', 'two')
    expect(wait()).toBe(0)
    expect(states).toEqual([1, 2, 1, 2, 0])
  })

  it('waits for no probe that hangs', () => {
    const { clock, circuit, call, wait } = opened()
    clock.advance(1000)
    const hanging = circuit.begin('mallory')
    clock.advance(1000)
    call('answered', 'alice')
    expect(wait('bob')).toBe(0)
    hanging('no_answer')
    expect(wait('bob')).toBe(0)
  })

  it('lets other callers send the next probe', () => {
    const { clock, call, wait } = opened()
    for (let second = 0; second < 10; second++) {
      clock.advance(1000)
      if (wait('mallory') === 0) call('server_error', 'mallory')
      clock.advance(1000)
      expect([wait('mallory'), wait('alice')]).toEqual([expect.any(Number), 0])
    }
    call('answered', 'alice')
    expect(wait('mallory')).toBe(0)
  })

  it('is not closed by calls that were in flight when it opened', () => {
    const { circuit, calls, wait } = open()
    const late = [circuit.begin('a'), circuit.begin('b')]
    calls(5, 'no_connection', each)
    for (const end of late) end('answered')
    expect(wait()).toBe(1)
  })

  it('resets its counts when it closes', () => {
    const { clock, call, calls, wait } = opened()
    clock.advance(1000)
    call('answered')
    calls(4, 'no_connection', each)
    expect(wait()).toBe(0)
  })
})
