import { expect, test } from 'vitest'
import { createReviewTurns, type Turn } from '../../../src/operator/webhook/review-turns.ts'

const MIB = 1024 * 1024
const waits = new AbortController().signal
const isOf = async (turn: Promise<Turn>): Promise<string> => (await turn).is
const doneOf = (turn: Turn): (() => void) => (turn.is === 'given' ? () => turn.done() : () => undefined)

test('a namespace has one turn at a time, in order, and others have theirs', async () => {
  const turns = createReviewTurns()
  const first = await turns.take('a', 1, waits)
  const order: string[] = []
  const second = turns.take('a', 1, waits).then((turn) => (order.push('second'), turn))
  const third = turns.take('a', 1, waits).then((turn) => (order.push('third'), turn))
  expect(await isOf(turns.take('b', 1, waits))).toBe('given')
  expect(order).toEqual([])
  doneOf(first)()
  doneOf(await second)()
  await third
  expect(order).toEqual(['second', 'third'])
})

test('an aborted review leaves the queue and delays no other', async () => {
  const turns = createReviewTurns()
  const first = await turns.take('a', 1, waits)
  const caller = new AbortController()
  const gone = turns.take('a', 1, caller.signal)
  const behind = turns.take('a', 1, waits)
  caller.abort()
  expect(await isOf(gone)).toBe('gone')
  expect(await isOf(turns.take('a', 1, caller.signal))).toBe('gone')
  doneOf(first)()
  expect(await isOf(behind)).toBe('given')
})

test('what waits is bounded by number and bytes per namespace, and by bytes in all', async () => {
  const turns = createReviewTurns()
  await turns.take('a', 1, waits)
  for (let at = 0; at < 64; at++) void turns.take('a', 1, waits)
  expect(await isOf(turns.take('a', 1, waits))).toBe('busy')
  const first = await turns.take('b', 3 * MIB, waits)
  void turns.take('b', 3 * MIB, waits)
  void turns.take('b', 3 * MIB, waits)
  expect(await isOf(turns.take('b', 3 * MIB, waits))).toBe('busy')
  doneOf(first)()
  for (let at = 0; at < 19; at++) expect(await isOf(turns.take(`c${at}`, 3 * MIB, waits))).toBe('given')
  expect(await isOf(turns.take('d', 3 * MIB, waits))).toBe('busy')
})
