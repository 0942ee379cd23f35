import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import type { FailureCode } from '../../../src/core/index.ts'
import { createWorld, settleMicrotasks, type Identity, type World } from '../../support/cache/world.ts'

const IDENTITIES = [
  { issuer: 'https://a.example', subject: 'alice' },
  { issuer: 'https://a.example', subject: 'bob' },
  { issuer: 'https://b.example', subject: 'alice' },
] as const satisfies readonly Identity[]
const CONFIGS = ['github', 'jira'] as const
const CODES: readonly FailureCode[] = ['identity_provider_unavailable', 'exchange_denied', 'expired_token']

// The first ones come up most, so that something goes on long enough to be refreshed.
const identity = fc.constantFrom(...IDENTITIES, IDENTITIES[0], IDENTITIES[0])
const config = fc.constantFrom(...CONFIGS, CONFIGS[0], CONFIGS[0])
const index = fc.nat({ max: 5 })

type Step = (world: World) => void

// Requests are the rule, the rest happens in between.
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 14,
    arbitrary: fc.tuple(config, identity).map(
      ([name, who]): Step =>
        (world) =>
          world.request(name, who),
    ),
  },
  {
    weight: 4,
    arbitrary: fc.tuple(index, fc.constantFrom(0, 1, 1_000, 60_000, 600_000, 3_600_000)).map(
      ([which, lifetimeMs]): Step =>
        (world) =>
          world.succeed(which, lifetimeMs),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(index, fc.constantFrom(...CODES), fc.option(fc.constantFrom(5, 90), { nil: undefined })).map(
      ([which, code, wait]): Step =>
        (world) =>
          world.fail(which, code, wait),
    ),
  },
  {
    weight: 4,
    arbitrary: fc.constantFrom(1, 500, 1_000, 9_999, 49_000, 530_000, 2_900_000, 3_569_999).map(
      (ms): Step =>
        (world) =>
          world.clock.advance(ms),
    ),
  },
  {
    weight: 1,
    arbitrary: config.map(
      (name): Step =>
        (world) =>
          world.rotateSecrets(name),
    ),
  },
  {
    weight: 1,
    arbitrary: config.map(
      (name): Step =>
        (world) =>
          world.reload(name),
    ),
  },
  {
    weight: 1,
    arbitrary: fc
      .record(
        { subject: fc.constantFrom('alice', 'bob'), issuer: fc.constant('https://a.example'), config },
        { requiredKeys: [] },
      )
      .map(
        (filter): Step =>
          (world) =>
            world.purge(filter),
      ),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(config, identity).map(
      ([name, who]): Step =>
        (world) =>
          world.reject(name, who),
    ),
  },
  {
    weight: 1,
    arbitrary: fc.double({ min: 0, max: 0.999, noNaN: true }).map(
      (value): Step =>
        (world) =>
          world.setRandom(value),
    ),
  },
)

const bounds = fc.constantFrom({ maxEntries: 10_000, maxPerOwner: 8 }, { maxEntries: 2, maxPerOwner: 1 })

test('whatever happens in between, each caller gets a live credential of their own and of the present config', async () => {
  const run = fc.assert(
    fc.asyncProperty(bounds, fc.array(step, { minLength: 5, maxLength: 80, size: 'max' }), async (limits, steps) => {
      const world = createWorld(limits)
      for (const run of steps) {
        run(world)
        await settleMicrotasks()
        world.checkBounds()
      }
      await world.finish()
    }),
    { numRuns: 3_000, seed: 20261121 },
  )
  await expect(run).resolves.toBeUndefined()
}, 240_000)

test('the steps of the model reach what they are meant to reach', async () => {
  const seen = new Map<string, number>()
  await fc.assert(
    fc.asyncProperty(bounds, fc.array(step, { minLength: 40, maxLength: 80, size: 'max' }), async (limits, steps) => {
      const world = createWorld(limits)
      for (const run of steps) {
        run(world)
        await settleMicrotasks()
      }
      for (const line of world.metrics.text().split('\n')) {
        const [name = ''] = line.split(' ')
        seen.set(name, (seen.get(name) ?? 0) + 1)
      }
    }),
    { numRuns: 300, seed: 7 },
  )
  const wanted = [
    ...['hit', 'miss', 'joined', 'negative'].map((outcome) => `requests_total|tokenExchange|${outcome}`),
    ...['expired', 'capacity', 'rejected', 'purged', 'retired', 'replaced'].map(
      (reason) => `removals_total|tokenExchange|${reason}`,
    ),
    ...['ok', 'exchange_denied', 'identity_provider_unavailable'].map(
      (outcome) => `fetches_total|tokenExchange|refresh|${outcome}`,
    ),
  ]
  expect(wanted.filter((name) => (seen.get(`extauth_credential_${name}`) ?? 0) < 3)).toEqual([])
}, 60_000)
