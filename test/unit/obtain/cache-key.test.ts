import { expect, test } from 'vitest'
import type { CacheSlot } from '../../../src/cache/index.ts'
import type { Credential } from '../../../src/core/index.ts'
import { createCachedSource } from '../../../src/obtain/cached.ts'
import type { FetchingSource } from '../../../src/obtain/source.ts'
import { createCaller, createManualClock, createTestSecrets } from '../../support/ports.ts'
import { asked } from '../../support/shown-tokens.ts'
import { createRig } from '../../support/obtain/harness.ts'
import { createSockets } from '../../support/sockets.ts'

/** The keys that a source asks the cache for. */
function keysOf(source: FetchingSource) {
  const keys: string[] = []
  const { cache } = createRig(createSockets(), { clock: createManualClock() })
  const get = (slot: CacheSlot<Credential>): Credential => {
    keys.push(slot.key)
    return { kind: 'none' }
  }
  const config = { name: 'github', namespace: 'ns', type: 'tokenExchange', configHash: 'h' }
  const cached = asked(createCachedSource(config, source, { cache: Object.assign(cache, { get }) }))
  return { keys, ask: () => cached.obtain(createCaller()) }
}

test('what was obtained with another secret has another key', () => {
  const secrets = createTestSecrets({ 'idp/secret': 'old' })
  const secret = secrets.get('idp/secret')
  const source: FetchingSource = {
    deadlineMs: 10_000,
    plan: () => ({ keyParts: ['a'] }),
    fetch: () => expect.fail('nothing is fetched'),
    secrets: [secret],
  }
  const { keys, ask } = keysOf(source)
  void ask()
  void ask()
  secret.set('new')
  void ask()
  expect(keys[1]).toBe(keys[0])
  expect(keys[2]).not.toBe(keys[0])
})
