import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { createCredentialCache, hashKey } from '../../../src/cache/index.ts'
import { Secret, type Credential } from '../../../src/core/index.ts'
import { createManualClock, createRecordingMetrics } from '../../support/ports.ts'
import { createHarness } from '../../support/cache/slots.ts'

test('one caller holds as many credentials as there are, as long as half of the cache is free', async () => {
  const { cache, slot, fill, metrics } = createHarness({ maxEntries: 40, maxPerOwner: 8 })
  for (let part = 0; part < 20; part += 1) await fill({ part: `${part}` }, `credential ${part}`)
  expect(cache.get(slot({ part: '0' }))).toBe('credential 0')
  await fill({ part: '20' }, 'credential 20')
  expect(cache.list().entries).toBe(8)
  const left = [0, 14, 15, 19, 20].filter((part) => typeof cache.get(slot({ part: `${part}` })) === 'string')
  expect(left).toEqual([0, 14, 15, 19, 20])
  expect(metrics.value('extauth_credential_removals_total', 'tokenExchange', 'owner_capacity')).toBe(13)
})

test('a thousand pods of one service account have a credential each', async () => {
  const { cache, slot, fill } = createHarness()
  for (let pod = 0; pod < 1_000; pod += 1) await fill({ part: `${pod}` }, `credential ${pod}`)
  for (let pod = 0; pod < 1_000; pod += 1) expect(cache.get(slot({ part: `${pod}` }))).toBe(`credential ${pod}`)
})

test('past half of the cache one caller holds so many of one config; the least recently used goes', async () => {
  const { cache, slot, fill, metrics } = createHarness({ maxEntries: 12, maxPerOwner: 8 })
  for (let part = 0; part < 8; part += 1) await fill({ part: `${part}` }, `credential ${part}`)
  await fill({ subject: 'bob' }, 'of bob')
  await fill({ config: 'ns/jira' }, 'of jira')
  void cache.get(slot({ part: '0' }))
  await fill({ part: '8' }, 'credential 8')
  expect(cache.get(slot({ part: '0' }))).toBe('credential 0')
  expect(cache.get(slot({ part: '1' }))).toBeInstanceOf(Promise)
  expect(cache.get(slot({ subject: 'bob' }))).toBe('of bob')
  expect(cache.get(slot({ config: 'ns/jira' }))).toBe('of jira')
  expect(metrics.value('extauth_credential_removals_total', 'tokenExchange', 'owner_capacity')).toBe(1)
})

test('the whole cache is bounded, and its metric says how much is in it', async () => {
  const { cache, fill, metrics, slot } = createHarness({ maxEntries: 100 })
  for (let caller = 0; caller < 250; caller += 1) await fill({ subject: `caller-${caller}` }, 'credential')
  expect(cache.list().entries).toBe(100)
  expect(metrics.value('extauth_credential_entries')).toBe(100)
  expect(cache.get(slot({ subject: 'caller-249' }))).toBe('credential')
  expect(cache.get(slot({ subject: 'caller-149' }))).toBeInstanceOf(Promise)
})

test('without a number the bound is bytes: as many small credentials fit as few large ones', async () => {
  const weigh = (credential: string): number => credential.length
  const keptOf = async (length: number): Promise<number> => {
    const { cache, fill } = createHarness({ maxBytes: 100 * 1024, weigh })
    for (let caller = 0; caller < 200; caller += 1) await fill({ subject: `caller-${caller}` }, 'x'.repeat(length))
    return cache.list().entries
  }
  expect(await keptOf(324)).toBe(100)
  expect(await keptOf(9540)).toBe(10)
})

test('sweeps grow rare with the cache, so that an addition to a large one costs what it does to a small one', async () => {
  let looks = 0
  const { clock, fill } = createHarness({ maxEntries: 10_000 })
  const now = clock.now.bind(clock)
  clock.now = () => (looks++, now())
  const looksOf = async (from: number, count: number): Promise<number> => {
    looks = 0
    for (let caller = from; caller < from + count; caller += 1)
      await fill({ subject: `caller-${caller}` }, 'credential')
    return looks / count
  }
  const early = await looksOf(0, 512)
  await looksOf(512, 3500)
  const late = await looksOf(4012, 2048)
  expect(late - early).toBeLessThan(6)
})

test('what has ended and is not asked for again leaves the memory while others come', async () => {
  const { clock, fill, metrics } = createHarness()
  for (let caller = 0; caller < 100; caller += 1) await fill({ subject: `old-${caller}` }, 'credential', 60_000)
  clock.advance(60_000)
  for (let caller = 0; caller < 256; caller += 1) await fill({ subject: `new-${caller}` }, 'credential')
  expect(metrics.value('extauth_credential_entries')).toBe(256)
  expect(metrics.value('extauth_credential_removals_total', 'tokenExchange', 'expired')).toBe(100)
})

test('the listing has counts and ages by config, issuer and role, and nothing that is secret', async () => {
  const { cache, clock, fill } = createHarness({ maxEntries: 10_000 })
  await fill({ config: 'ns/aws', role: 'reader', subject: 'alice' }, 'SECRET-1', 3_600_000)
  clock.advance(60_000)
  await fill({ config: 'ns/aws', role: 'reader', subject: 'bob' }, 'SECRET-2', 600_000)
  await fill({ config: 'ns/a' }, 'SECRET-3', 100_000)
  await fill({ config: 'ns/gone' }, 'SECRET-4', 1_000)
  clock.advance(10_000)
  expect(cache.list()).toEqual({
    entries: 3,
    maxEntries: 10_000,
    inFlight: 0,
    negative: 0,
    groups: [
      {
        config: 'ns/a',
        type: 'tokenExchange',
        issuer: 'https://id.example',
        count: 1,
        oldestAgeSeconds: 10,
        newestAgeSeconds: 10,
        soonestEndSeconds: 80,
      },
      {
        config: 'ns/aws',
        type: 'tokenExchange',
        issuer: 'https://id.example',
        role: 'reader',
        count: 2,
        oldestAgeSeconds: 70,
        newestAgeSeconds: 10,
        soonestEndSeconds: 560,
      },
    ],
  })
  expect(JSON.stringify(cache.list())).not.toMatch(/SECRET|alice|bob/)
})

test('an entry takes at most 700 bytes beyond the token', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const count = 10_000
  const clock = createManualClock()
  const cache = createCredentialCache<Credential>({ clock, metrics: createRecordingMetrics(), random: Math.random })
  const scope = cache.scope('ns/github', 'tokenExchange')
  const generation = { configHash: 'h', secrets: 's' }
  // As long as what a token exchange gives: one byte per character.
  const tokenOf = (index: number) => Buffer.from(`${index}:`.padEnd(1_024, 'x')).toString('latin1')
  const add = async (index: number) => {
    // Parsed from a token, so that nothing is shared between callers.
    const { issuer, subject } = JSON.parse(
      `{"issuer":"https://id.example.com/realms/main","subject":"user-${index}-5f0c1a2b3c4d"}`,
    ) as { issuer: string; subject: string }
    const owner = {
      scope,
      generation,
      issuer,
      subject,
      ownerId: subject,
      role: undefined,
      notAfterMs: undefined,
      deadlineMs: 10_000,
    }
    await cache.get({
      ...owner,
      key: hashKey([issuer, subject]),
      fetch: () =>
        Promise.resolve({
          value: { kind: 'header', name: 'authorization', value: new Secret(tokenOf(index)) } as const,
          expiresAtMs: clock.now() + 3_600_000,
        }),
    })
  }
  // The first ones grow the tables and compile the code.
  for (let index = 0; index < 100; index += 1) await add(index)
  collect()
  const before = process.memoryUsage().heapUsed
  for (let index = 100; index < count; index += 1) await add(index)
  collect()
  const perEntry = (process.memoryUsage().heapUsed - before) / (count - 100)
  expect(cache.list().entries).toBe(count)
  expect(perEntry - 1_024).toBeLessThan(700)
  expect(perEntry).toBeGreaterThan(1_024)
}, 30_000)
