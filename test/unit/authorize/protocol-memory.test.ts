import { expect, it } from 'vitest'
import { createProtocolMemory } from '../../../src/authorize/index.ts'
import type { McpView } from '../../../src/core/index.ts'
import { NO_CLAIMS } from '../../../src/core/index.ts'
import { callerWith } from '../../support/authorize/ruled.ts'

const call = (length: number): McpView => ({
  method: 'tools/call',
  kind: 'tool',
  name: 'get_a',
  uri: '',
  args: { text: 'x'.repeat(length) },
  annotations: NO_CLAIMS,
})

it('tasks keep the call that created them, each for its caller', () => {
  const memory = createProtocolMemory().of('r', 'http://backend')
  memory.noteTask(callerWith({}, 'ada'), 't', call(3))
  expect(memory.taskOf(callerWith({}, 'ada'), 't')).toEqual(call(3))
  expect(memory.taskOf(callerWith({}, 'bob'), 't')).toBeUndefined()
})

it('calls of tasks are bounded, each and together, and the oldest go first', () => {
  const memory = createProtocolMemory().of('r', 'http://backend')
  const of = (at: number) => callerWith({}, `user-${at}`)
  memory.noteTask(of(0), 'large', call(64 * 1024))
  expect(memory.taskOf(of(0), 'large')).toBeUndefined()
  for (let at = 0; at < 300; at++) memory.noteTask(of(at), 't', call(60_000))
  const kept = Array.from({ length: 300 }, (_, at) => memory.taskOf(of(at), 't') !== undefined)
  expect(kept.filter(Boolean)).toHaveLength(Math.floor((16 * 1024 * 1024) / JSON.stringify(call(60_000)).length))
  expect(kept.indexOf(true)).toBe(kept.filter((one) => !one).length)
  // The same task again takes the place of its first call.
  for (let time = 0; time < 300; time++) memory.noteTask(of(299), 't', call(60_000))
  expect(memory.taskOf(of(298), 't')).toBeDefined()
})
