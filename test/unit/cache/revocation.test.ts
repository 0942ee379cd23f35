import { expect, test } from 'vitest'
import type { PurgeFilter } from '../../../src/cache/index.ts'
import { Failure } from '../../../src/core/index.ts'
import { createHarness, type SlotOptions } from '../../support/cache/slots.ts'
import { settleMicrotasks } from '../../support/cache/world.ts'

const ENTRIES: readonly SlotOptions[] = [
  { subject: 'alice', issuer: 'https://a.example', config: 'ns/github' },
  { subject: 'alice', issuer: 'https://b.example', config: 'ns/github' },
  { subject: 'bob', issuer: 'https://a.example', config: 'ns/github' },
  { subject: 'alice', issuer: 'https://a.example', config: 'ns/aws', role: 'reader' },
  { subject: 'alice', issuer: 'https://a.example', config: 'ns/aws', role: 'admin' },
]

test.each<[PurgeFilter, number[]]>([
  [{}, [0, 1, 2, 3, 4]],
  [{ subject: 'alice' }, [0, 1, 3, 4]],
  [{ issuer: 'https://a.example' }, [0, 2, 3, 4]],
  [{ config: 'ns/github' }, [0, 1, 2]],
  [{ config: 'github' }, [0, 1, 2]],
  [{ config: 'hub' }, []],
  [{ role: 'admin' }, [4]],
  [{ subject: 'alice', issuer: 'https://a.example', config: 'aws' }, [3, 4]],
  [{ subject: 'carol' }, []],
])('a purge by %j removes exactly what matches', async (filter, removed) => {
  const { cache, slot, fill, metrics } = createHarness()
  for (const [index, options] of ENTRIES.entries()) await fill(options, `credential ${index}`)
  expect(cache.purge(filter).purged).toBe(removed.length)
  for (const [index, options] of ENTRIES.entries()) {
    const answer = cache.get(slot(options))
    if (removed.includes(index)) expect(answer).toBeInstanceOf(Promise)
    else expect(answer).toBe(`credential ${index}`)
  }
  expect(metrics.value('extauth_credential_removals_total', 'tokenExchange', 'purged')).toBe(removed.length)
})

test('a purge forgets failures too', async () => {
  const { cache, calls, slot } = createHarness()
  const answer = cache.get(slot()) as Promise<string>
  await settleMicrotasks()
  calls.pop()?.fail(new Failure('exchange_denied'))
  await expect(answer).rejects.toBeInstanceOf(Failure)
  cache.purge({ subject: 'alice' })
  expect(cache.get(slot())).toBeInstanceOf(Promise)
})

test('a changed secret retires what was obtained with the old one, under the same config only', async () => {
  const { cache, slot, fill } = createHarness()
  const old = { configHash: 'h1', secrets: 's1' }
  const next = { configHash: 'h1', secrets: 's2' }
  const draining = { configHash: 'h0', secrets: 's1' }
  await fill({ generation: old }, 'old')
  await fill({ generation: draining }, 'of the old config')
  await fill({ generation: old, config: 'ns/jira' }, 'other')
  expect(cache.retireSecrets('ns/github', next)).toBe(1)
  expect(cache.get(slot({ generation: old }))).toBeInstanceOf(Promise)
  expect(cache.get(slot({ generation: draining }))).toBe('of the old config')
  expect(cache.get(slot({ generation: old, config: 'ns/jira' }))).toBe('other')
})

test('a reload retires changed and removed configs and no others', async () => {
  const { cache, slot, fill } = createHarness()
  const generation = { configHash: 'h1', secrets: 's' }
  for (const config of ['ns/same', 'ns/changed', 'ns/gone']) await fill({ config, generation }, config)
  const retired = cache.retireConfigs(
    new Map([
      ['ns/same', 'h1'],
      ['ns/changed', 'h2'],
    ]),
  )
  expect(retired).toBe(2)
  expect(cache.get(slot({ config: 'ns/same', generation }))).toBe('ns/same')
  expect(cache.get(slot({ config: 'ns/changed', generation }))).toBeInstanceOf(Promise)
  expect(cache.get(slot({ config: 'ns/gone', generation }))).toBeInstanceOf(Promise)
})

test('a refused credential is forgotten; one that is newer stays', async () => {
  const { cache, slot, fill, clock } = createHarness()
  await fill({}, 'first', 60_000)
  expect(cache.reject(slot(), 'first')).toBe(true)
  await fill({}, 'second', 60_000)
  expect(cache.reject(slot(), 'first')).toBe(true)
  expect(cache.get(slot())).toBe('second')
  clock.advance(1_000)
  expect(cache.reject(slot(), 'second')).toBe(true)
  expect(cache.get(slot())).toBeInstanceOf(Promise)
})

test('a backend that refuses everything costs at most one fetch per second and caller', async () => {
  const { cache, slot, fill, clock } = createHarness()
  await fill({}, 'first')
  expect(cache.reject(slot(), 'first')).toBe(true)
  await fill({}, 'second')
  expect(cache.reject(slot(), 'second')).toBe(false)
  expect(cache.get(slot())).toBe('second')
  clock.advance(1_000)
  expect(cache.reject(slot(), 'second')).toBe(true)
})
