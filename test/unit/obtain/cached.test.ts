import { expect, test, vi } from 'vitest'
import { createCredentialCache } from '../../../src/cache/index.ts'
import {
  ANONYMOUS,
  Failure,
  NO_REQUEST,
  Secret,
  type AuthenticatedCaller,
  type Credential,
} from '../../../src/core/index.ts'
import { createCachedSource } from '../../../src/obtain/cached.ts'
import type { Fetched, Plan } from '../../../src/obtain/index.ts'
import { asked } from '../../support/shown-tokens.ts'
import {
  createCaller,
  createManualClock,
  createRecordingMetrics,
  createTestSecrets,
  START_MS,
} from '../../support/ports.ts'

function createHarness(members: { plan?: (caller: AuthenticatedCaller) => Plan } = {}) {
  const clock = createManualClock()
  const cache = createCredentialCache<Credential>({ clock, metrics: createRecordingMetrics(), random: () => 0.5 })
  const secrets = createTestSecrets({ 'a/one': '1', 'a/two': '2' })
  const plan = vi.fn<(caller: AuthenticatedCaller) => Plan>(
    members.plan ?? ((caller) => ({ keyParts: [caller.tokenDigest] })),
  )
  let fetches = 0
  const fetch = vi.fn<(caller: AuthenticatedCaller, plan: Plan) => Promise<Fetched>>((caller) => {
    fetches += 1
    const value = new Secret(`${caller.subject} ${fetches}`)
    return Promise.resolve({
      credential: { kind: 'header', name: 'authorization', value },
      expiresAtMs: START_MS + 3_600_000,
    })
  })
  const open = (configHash = 'h', name = 'github') =>
    asked(
      createCachedSource(
        { name, namespace: 'default', type: 'tokenExchange', configHash },
        { plan, fetch, deadlineMs: 10_000, secrets: [secrets.get('a/one'), secrets.get('a/two')] },
        { cache },
      ),
    )
  return { clock, cache, secrets, plan, fetch, open }
}

const textOf = async (credential: Credential | Promise<Credential>) => {
  const found = await credential
  return found.kind === 'header' ? found.value.reveal() : found.kind
}

test('a warm request is answered without a promise, a plan or a hash', async () => {
  const { open, plan, fetch } = createHarness()
  const source = open()
  const caller = createCaller()
  const first = await source.obtain(caller)
  for (let request = 0; request < 100; request += 1) expect(source.obtain(caller)).toBe(first)
  expect(plan).toHaveBeenCalledTimes(1)
  expect(fetch).toHaveBeenCalledTimes(1)
})

test('another caller object for the same token finds the same credential', async () => {
  const { open, fetch } = createHarness()
  const source = open()
  const first = await source.obtain(createCaller())
  expect(source.obtain(createCaller())).toBe(first)
  expect(fetch).toHaveBeenCalledTimes(1)
})

test('two routes with the same config share credentials, another hash or name does not', async () => {
  const { open, fetch } = createHarness()
  const caller = createCaller()
  const first = await open().obtain(caller)
  expect(open().obtain(caller)).toBe(first)
  expect(await textOf(open('h2').obtain(caller))).toBe('alice 2')
  expect(await textOf(open('h', 'jira').obtain(caller))).toBe('alice 3')
  expect(fetch).toHaveBeenCalledTimes(3)
})

test.each([
  ['another subject', { subject: 'bob', token: 't' }],
  ['another issuer', { issuer: 'https://other.example', token: 't' }],
  ['another token', { token: 'other' }],
])('%s gets a credential of its own', async (_what, options) => {
  const { open, fetch } = createHarness()
  const source = open()
  await source.obtain(createCaller({ token: 't' }))
  await source.obtain(createCaller(options))
  expect(fetch).toHaveBeenCalledTimes(2)
})

test('when a secret changes, what was fetched with the old one is gone at once', async () => {
  const { open, secrets, cache } = createHarness()
  const source = open()
  const [alice, bob] = [createCaller({ subject: 'alice' }), createCaller({ subject: 'bob' })]
  await source.obtain(alice)
  await source.obtain(bob)
  secrets.get('a/two').set('another')
  expect(await textOf(source.obtain(alice))).toBe('alice 3')
  expect(cache.list().entries).toBe(1)
  expect(await textOf(source.obtain(bob))).toBe('bob 4')
})

test('a rejected credential is fetched again once, and requests with the old one change nothing', async () => {
  const { open, fetch } = createHarness()
  const source = open()
  const caller = createCaller()
  const old = await source.obtain(caller)
  expect(await source.reject(caller, old)).toBe(true)
  const fresh = await source.obtain(caller)
  expect(await source.reject(caller, old)).toBe(true)
  expect(source.obtain(caller)).toBe(fresh)
  expect(fetch).toHaveBeenCalledTimes(2)
})

test('a caller without a credential gets the same failure each time, planned once', () => {
  const { open, plan } = createHarness({
    plan: () => {
      throw new Failure('no_role')
    },
  })
  const source = open()
  const caller = createCaller()
  for (let request = 0; request < 3; request += 1) {
    expect(() => source.obtain(caller)).toThrow(expect.objectContaining({ code: 'no_role' }))
  }
  expect(plan).toHaveBeenCalledTimes(1)
})

test('an anonymous caller is a config error', () => {
  const { open } = createHarness()
  expect(() => open().obtain(ANONYMOUS)).toThrow(expect.objectContaining({ code: 'config_error' }))
})

test('callers without a subject never get what another one of them got', async () => {
  const { open, fetch } = createHarness({ plan: () => ({ keyParts: ['the same'] }) })
  const source = open()
  const of = (claims: Record<string, string>, token: string) => createCaller({ subject: '', claims, token })
  await source.obtain(of({}, 'one'))
  await source.obtain(of({}, 'two'))
  await source.obtain(of({ client_id: 'app', sid: 's1' }, 'three'))
  await source.obtain(of({ client_id: 'app', sid: 's2' }, 'four'))
  await source.obtain(of({ client_id: 'app' }, 'five'))
  await source.obtain(of({ client_id: 'app' }, 'six'))
  expect(fetch).toHaveBeenCalledTimes(6)
  await source.obtain(of({ client_id: 'app', sid: 's1' }, 'seven'))
  await source.obtain(of({ azp: 'app', sid: 's2' }, 'eight'))
  expect(fetch).toHaveBeenCalledTimes(6)
})

test('callers without a subject each have a bound of their own', async () => {
  const { open, cache } = createHarness()
  const source = open()
  for (let index = 0; index < 20; index += 1) await source.obtain(createCaller({ subject: '', token: `t${index}` }))
  expect(cache.list().entries).toBe(20)
})

test('a million requests of 1,000 callers over two lifetimes make at most 3,000 fetches, and none waits but the first', async () => {
  const { clock, cache } = createHarness()
  let fetches = 0
  const source = asked(
    createCachedSource(
      { name: 'busy', namespace: 'default', type: 'tokenExchange', configHash: 'h' },
      {
        deadlineMs: 10_000,
        plan: (caller) => ({ keyParts: [caller.tokenDigest] }),
        fetch: () => {
          fetches += 1
          const value = new Secret(`${fetches}`)
          const credential = { kind: 'header', name: 'authorization', value } as const
          return Promise.resolve({ credential, expiresAtMs: clock.now() + 3_600_000 })
        },
      },
      { cache },
    ),
  )
  const callers = Array.from({ length: 1_000 }, (_, index) =>
    createCaller({ subject: `u${index}`, token: `t${index}` }),
  )
  let waits = 0
  for (let round = 0; round < 1_000; round += 1) {
    const pending: Promise<unknown>[] = []
    for (const caller of callers) {
      const answer = source.obtain(caller)
      if (answer instanceof Promise) pending.push(answer)
    }
    waits += pending.length
    await Promise.all(pending)
    await new Promise((resolve) => setImmediate(resolve))
    clock.advance(7_200)
  }
  expect(waits).toBe(1_000)
  expect(fetches).toBeLessThanOrEqual(3_000)
}, 30_000)

test('a look-up for a source that reads the request reports the refusal of that request only', async () => {
  const cache = createCredentialCache<Credential>({
    clock: createManualClock(),
    metrics: createRecordingMetrics(),
    random: () => 0.5,
  })
  const plan = (): Plan => {
    throw new Failure('no_role')
  }
  const fetch = () => Promise.reject(new Error('not reached'))
  const source = createCachedSource(
    { name: 'github', namespace: 'default', type: 'tokenExchange', configHash: 'h' },
    { plan, fetch, deadlineMs: 10_000, secrets: [], readsRequest: true },
    { cache },
  )
  const caller = createCaller()
  const requestFor = () => ({ view: { mcp: NO_REQUEST, subjects: [], id: 1, list: undefined } }) as never
  const request = requestFor()
  const refused = expect.objectContaining({ code: 'no_role' }) as Error
  const token = undefined as never
  expect(() => source.obtain(caller, token, request)).toThrow(refused)
  expect(source.lookup?.(caller, request)).toEqual({ from: 'refusal' })
  expect(source.lookup?.(caller, requestFor())).toEqual({ from: 'nowhere' })
  // Without a request, the refusal is kept with the caller; it is not that of a request.
  const other = createCaller()
  expect(() => source.obtain(other, token)).toThrow(refused)
  expect(source.lookup?.(other, requestFor())).toEqual({ from: 'nowhere' })
})

test('for whom there is none, a look-up says so: at first, and then that it was refused a moment ago', async () => {
  const refuse = () => {
    throw new Failure('no_role')
  }
  const source = createHarness({ plan: refuse }).open()
  const caller = createCaller()
  expect(source.lookup?.(caller)).toEqual({ from: 'nowhere' })
  await expect((async () => source.obtain(caller))()).rejects.toMatchObject({ code: 'no_role' })
  expect(source.lookup?.(caller)).toEqual({ from: 'refusal' })
  expect(source.lookup?.(createCaller())).toEqual({ from: 'nowhere' })
})
