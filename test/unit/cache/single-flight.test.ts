import { expect, test } from 'vitest'
import { Failure } from '../../../src/core/index.ts'
import { createHarness } from '../../support/cache/slots.ts'
import { settleMicrotasks } from '../../support/cache/world.ts'

test('a thousand requests on a cold cache make one call and all get what it brings', async () => {
  const { cache, calls, slot, metrics } = createHarness()
  const answers = Array.from({ length: 1_000 }, async () => cache.get(slot()))
  await settleMicrotasks()
  expect(calls).toHaveLength(1)
  calls[0]?.succeed('credential', 60_000)
  expect(new Set(await Promise.all(answers))).toEqual(new Set(['credential']))
  expect(metrics.value('extauth_credential_requests_total', 'tokenExchange', 'miss')).toBe(1)
  expect(metrics.value('extauth_credential_requests_total', 'tokenExchange', 'joined')).toBe(999)
})

test('waiters that give up cancel nothing, not even when all of them do', async () => {
  const { cache, calls, slot } = createHarness()
  const controllers = Array.from({ length: 5 }, () => new AbortController())
  const waiting = controllers.map(({ signal }) =>
    Promise.race([
      cache.get(slot()),
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('gone')))),
    ]),
  )
  const outcomes = Promise.allSettled(waiting)
  await settleMicrotasks()
  for (const controller of controllers) controller.abort()
  const late = cache.get(slot())
  await settleMicrotasks()
  expect(calls).toHaveLength(1)
  calls[0]?.succeed('credential', 60_000)
  expect(await late).toBe('credential')
  expect((await outcomes).map(({ status }) => status)).toEqual(Array.from({ length: 5 }, () => 'rejected'))
  expect(cache.get(slot())).toBe('credential')
})

test('a failed call fails all who waited, and the next request may try', async () => {
  const { cache, calls, slot } = createHarness()
  const answers = Promise.allSettled([slot(), slot()].map(async (wanted) => cache.get(wanted)))
  await settleMicrotasks()
  calls[0]?.fail(new Failure('expired_token'))
  expect((await answers).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  void cache.get(slot())
  await settleMicrotasks()
  expect(calls).toHaveLength(2)
})

test.each(['expired_token', 'invalid_token'] as const)(
  'who waits for a call that fails for another token of the caller (%s) is not refused for it',
  async (code) => {
    const { cache, calls, slot } = createHarness()
    const ask = async (tokenDigest: string) => cache.get(slot({ tokenDigest }))
    const old = Promise.allSettled([ask('old'), ask('old')])
    await settleMicrotasks()
    const renewed = [ask('new'), ask('new')]
    await settleMicrotasks()
    expect(calls).toHaveLength(1)
    calls[0]?.fail(new Failure(code))
    await settleMicrotasks()
    expect((await old).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(calls).toHaveLength(2)
    calls[1]?.succeed('credential', 60_000)
    expect(await Promise.all(renewed)).toEqual(['credential', 'credential'])
  },
)

test('what has nothing to do with the token is not asked again by those who waited', async () => {
  const { cache, calls, slot } = createHarness()
  const answers = Promise.allSettled(['one', 'other'].map(async (tokenDigest) => cache.get(slot({ tokenDigest }))))
  await settleMicrotasks()
  calls[0]?.fail(new Failure('role_denied'))
  expect((await answers).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(calls).toHaveLength(1)
})

test('a fetch that throws before it returns a promise leaves nothing behind', async () => {
  const { cache, calls, slot } = createHarness()
  const broken = {
    ...slot(),
    fetch: () => {
      throw new TypeError('a bug')
    },
  }
  await expect(cache.get(broken)).rejects.toMatchObject({ code: 'internal_error' })
  const answer = cache.get(slot())
  await settleMicrotasks()
  calls[0]?.succeed('credential', 60_000)
  expect(await answer).toBe('credential')
})

test('after a purge a request waits for the call before it and then makes one of its own', async () => {
  const { cache, calls, slot } = createHarness()
  const before = cache.get(slot())
  await settleMicrotasks()
  cache.purge({ subject: 'alice' })
  const after = [slot(), slot()].map(async (wanted) => cache.get(wanted))
  await settleMicrotasks()
  expect(calls).toHaveLength(1)
  calls[0]?.succeed('old', 60_000)
  await settleMicrotasks()
  expect(calls).toHaveLength(2)
  calls[1]?.succeed('new', 60_000)
  expect(await before).toBe('old')
  expect(await Promise.all(after)).toEqual(['new', 'new'])
})

test('different callers never wait for each other', async () => {
  const { cache, calls, slot } = createHarness()
  const alice = cache.get(slot({ subject: 'alice' }))
  const bob = cache.get(slot({ subject: 'bob' }))
  await settleMicrotasks()
  calls[1]?.succeed('of bob', 60_000)
  expect(await bob).toBe('of bob')
  calls[0]?.succeed('of alice', 60_000)
  expect(await alice).toBe('of alice')
})
