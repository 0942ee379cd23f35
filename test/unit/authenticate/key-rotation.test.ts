import { beforeEach, describe, expect, it, vi } from 'vitest'
import type { Authenticator } from '../../../src/authenticate/index.ts'
import { published, rsaKey, signed, type TestKey } from '../../support/authenticate/keys.ts'
import {
  AUDIENCE,
  callerOf,
  createWorld,
  ISSUER,
  json,
  JWKS_URL,
  provider,
  refusalOf,
  status,
  unreachable,
  type World,
} from '../../support/authenticate/world.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const old = await rsaKey({ kid: 'old' })
const fresh = await rsaKey({ kid: 'fresh' })

let world: World
let authenticator: Authenticator
let serial = 0

/** A token without a cached result. */
const token = (key: TestKey) => {
  const exp = world.nowSeconds() + 7200
  const payload = { iss: ISSUER, aud: AUDIENCE, sub: 'alice', exp, jti: String(serial++) }
  return signed(key, { alg: 'RS256', kid: key.jwk.kid }, payload)
}
const accepted = async (key: TestKey) => (await callerOf(authenticator, await token(key))).subject
const refused = async (key: TestKey) => refusalOf(authenticator, await token(key))
/** An answer that never comes. */
const silent = () => new Promise<never>(() => undefined)
/** Lets what runs in the background finish. */
const settle = () => new Promise((resolve) => setImmediate(resolve))

beforeEach(() => {
  world = createWorld()
  world.serveKeys([old])
  authenticator = world.authenticator([provider()])
})

describe('keys', () => {
  it('are fetched once for all waiting callers', async () => {
    const tokens = await Promise.all(Array.from({ length: 50 }, () => token(old)))
    const callers = await Promise.all(tokens.map((one) => callerOf(authenticator, one)))
    expect(callers.every((caller) => caller.subject === 'alice')).toBe(true)
    expect(world.asked(JWKS_URL)).toBe(1)
  })

  it('are fetched at the start, ahead of the first token', async () => {
    await authenticator.start()
    expect(world.asked(JWKS_URL)).toBe(1)
    // The provider has not to be waited for any more.
    world.on(JWKS_URL, silent)
    expect(await accepted(old)).toBe('alice')
    expect(world.asked(JWKS_URL)).toBe(1)
    await authenticator.close()
  })

  it('are kept current by themselves after the start, without any token', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    const pass = async (ms: number) => {
      world.clock.advance(ms)
      vi.advanceTimersByTime(ms)
      await settle()
    }
    world.on(JWKS_URL, unreachable)
    await authenticator.start()
    world.serveKeys([old])
    await pass(30_000)
    expect(world.asked(JWKS_URL)).toBe(2)
    for (let minute = 0; minute < 60; minute++) await pass(MINUTE)
    expect(world.asked(JWKS_URL)).toBe(8)
    await authenticator.close()
    await pass(HOUR)
    expect(world.asked(JWKS_URL)).toBe(8)
    vi.useRealTimers()
  })

  it('that rotate are found by one refresh for the first unknown kid', async () => {
    await accepted(old)
    world.serveKeys([fresh])
    expect(await Promise.all(Array.from({ length: 20 }, () => accepted(fresh)))).toHaveLength(20)
    expect(world.asked(JWKS_URL)).toBe(2)
  })

  it('that are gone after a rotation verify nothing any more', async () => {
    await accepted(old)
    world.serveKeys([fresh])
    await accepted(fresh)
    expect(await refused(old)).toMatchObject({ code: 'invalid_token', detail: 'no key of the provider fits' })
  })

  it('are fetched again for unknown kids once per 5 s; meanwhile no client has to log in', async () => {
    const unknown = await rsaKey()
    const stranger = (count: number) => published(unknown, { kid: `stranger-${count}` })
    await accepted(old)
    expect((await refused(stranger(0))).code).toBe('invalid_token')
    expect(world.asked(JWKS_URL)).toBe(2)
    for (let count = 1; count < 10; count++) {
      expect(await refused(stranger(count))).toMatchObject({
        code: 'identity_provider_unavailable',
        status: 503,
        retryAfterSeconds: 5,
      })
    }
    world.clock.advance(4999)
    expect(await refused(stranger(10))).toMatchObject({ status: 503, retryAfterSeconds: 1 })
    expect(world.asked(JWKS_URL)).toBe(2)
    world.clock.advance(1)
    expect((await refused(stranger(10))).status).toBe(401)
    // The fetch answers for every name that was seen before it.
    for (let count = 1; count < 10; count++) expect((await refused(stranger(count))).status).toBe(401)
    expect((await refused(stranger(11))).status).toBe(503)
    expect(world.asked(JWKS_URL)).toBe(3)
    // Meanwhile good tokens are good.
    expect(await accepted(old)).toBe('alice')
  })

  it('that rotate are found within 5 s, however many kids are invented, at one fetch per 5 s', async () => {
    const unknown = await rsaKey()
    await accepted(old)
    for (let half = 0; half < 60; half++) {
      if (half === 31) world.serveKeys([fresh])
      await refused(published(unknown, { kid: `invented-${half}` }))
      if (half >= 41) expect(await accepted(fresh)).toBe('alice')
      world.clock.advance(500)
    }
    expect(world.asked(JWKS_URL)).toBeLessThanOrEqual(1 + 60 / 10)
  })

  it('that rotate twice in a row are followed within 5 s', async () => {
    await accepted(old)
    for (const kid of ['second', 'third', 'fourth']) {
      const next = await rsaKey({ kid })
      world.serveKeys([next])
      world.clock.advance(5000)
      expect(await accepted(next)).toBe('alice')
    }
  })

  it('that are replaced under their own kid are found by one fetch, at most one per 5 min', async () => {
    const made = await rsaKey({ kid: 'old' })
    await accepted(old)
    world.serveKeys([made])
    expect(await Promise.all(Array.from({ length: 20 }, () => accepted(made)))).toHaveLength(20)
    expect(world.asked(JWKS_URL)).toBe(2)
    // A token with another unknown key causes no further fetch yet.
    for (let count = 0; count < 20; count++) {
      expect(await refused(old)).toMatchObject({ code: 'invalid_token', detail: 'the signature is wrong' })
      world.clock.advance(14_900)
    }
    expect(world.asked(JWKS_URL)).toBe(2)
    const again = await rsaKey({ kid: 'old' })
    world.serveKeys([again])
    world.clock.advance(5000)
    expect(await accepted(again)).toBe('alice')
    expect(world.asked(JWKS_URL)).toBe(3)
  })

  it('that are replaced without any kid are found the same way', async () => {
    const [one, two] = [await rsaKey(), await rsaKey()]
    world.serveKeys([one])
    authenticator = world.authenticator([provider()])
    await accepted(one)
    world.serveKeys([two])
    expect(await accepted(two)).toBe('alice')
  })

  it('that cannot be compared again leave a wrong signature wrong, and are fetched later', async () => {
    const made = await rsaKey({ kid: 'old' })
    await accepted(old)
    world.on(JWKS_URL, unreachable)
    expect((await refused(made)).code).toBe('invalid_token')
    expect(await accepted(old)).toBe('alice')
    world.serveKeys([made])
    world.clock.advance(5000)
    expect(await accepted(made)).toBe('alice')
  })

  it('that came while another provider was busy with the token are looked at too', async () => {
    // Both providers may speak for this token; the second has another key under the same name.
    const namesake = await rsaKey({ kid: 'fresh' })
    const elsewhere = `${ISSUER}/other-jwks`
    world.serveKeys([namesake], {}, elsewhere)
    authenticator = world.authenticator([
      provider(),
      provider({ name: 'other', audience: 'other', jwksUrl: elsewhere }),
    ])
    await authenticator.start()
    world.serveKeys([fresh])
    const exp = world.nowSeconds() + 60
    const header = { alg: 'RS256', kid: 'fresh' }
    const forBoth = await signed(fresh, header, { iss: ISSUER, aud: [AUDIENCE, 'other'], sub: 'alice', exp })
    const forOne = await signed(fresh, header, { iss: ISSUER, aud: AUDIENCE, sub: 'bob', exp })
    const callers = await Promise.all([callerOf(authenticator, forBoth), callerOf(authenticator, forOne)])
    expect(callers.map((caller) => caller.subject)).toEqual(['alice', 'bob'])
    expect(world.asked(JWKS_URL)).toBe(2)
    await authenticator.close()
  })

  it('that cannot be refreshed for an unknown kid are an outage, not a bad token', async () => {
    await accepted(old)
    world.on(JWKS_URL, unreachable)
    expect(await refused(fresh)).toMatchObject({ code: 'identity_provider_unavailable', status: 503 })
    expect((await refused(fresh)).retryAfterSeconds).toBeGreaterThanOrEqual(1)
    expect(await accepted(old)).toBe('alice')
    world.serveKeys([old, fresh])
    world.clock.advance(30_000)
    expect(await accepted(fresh)).toBe('alice')
  })
})

describe('keys that reach their age', () => {
  it.each<[string, Record<string, string>, number]>([
    ['10 minutes without cache headers', {}, 10 * MINUTE],
    ['what max-age says', { 'cache-control': 'public, max-age=1200' }, 20 * MINUTE],
    ['what max-age says, less Age', { 'cache-control': 'max-age=1200', age: '300' }, 15 * MINUTE],
    ['5 minutes at least', { 'cache-control': 'max-age=1' }, 5 * MINUTE],
    ['5 minutes for no-store', { 'cache-control': 'no-store, max-age=3600' }, 5 * MINUTE],
    ['24 hours at most', { 'cache-control': 'max-age=31536000' }, 24 * HOUR],
    [
      'Expires less Date',
      { expires: 'Wed, 21 Oct 2026 08:00:00 GMT', date: 'Wed, 21 Oct 2026 07:30:00 GMT' },
      30 * MINUTE,
    ],
    ['5 minutes for an Expires of 0', { expires: '0' }, 5 * MINUTE],
    ['10 minutes for a max-age that is no number', { 'cache-control': 'max-age=soon' }, 10 * MINUTE],
  ])('after %s are refreshed in the background, while they still serve', async (_name, headers, ageMs) => {
    world.serveKeys([old], headers)
    await accepted(old)
    world.clock.advance(ageMs - 1)
    await accepted(old)
    await settle()
    expect(world.asked(JWKS_URL)).toBe(1)
    world.clock.advance(1)
    world.on(JWKS_URL, silent)
    expect(await accepted(old)).toBe('alice')
    await settle()
    expect(world.asked(JWKS_URL)).toBe(2)
  })

  it('serve for an hour past it while the provider is down, then 503 with Retry-After', async () => {
    await accepted(old)
    world.on(JWKS_URL, unreachable)
    world.clock.advance(10 * MINUTE + HOUR - 1)
    expect(await accepted(old)).toBe('alice')
    await settle()
    world.clock.advance(1)
    const failure = await refused(old)
    expect(failure).toMatchObject({ code: 'identity_provider_unavailable', status: 503 })
    expect(failure.retryAfterSeconds).toBeGreaterThanOrEqual(1)
    expect(failure.challenge).toBeUndefined()
    world.serveKeys([old])
    world.clock.advance(30_000)
    expect(await accepted(old)).toBe('alice')
  })

  it.each<[string, Parameters<World['on']>[1]]>([
    ['a page', () => ({ status: 200, headers: {}, body: Buffer.from('<html></html>') })],
    ['something that is no JWKS', () => json({ keys: 'none' })],
    ['404', () => status(404)],
    ['500', () => status(500)],
  ])('keep serving when the provider answers %s, and are 503 at the end', async (_name, respond) => {
    await accepted(old)
    world.on(JWKS_URL, respond)
    world.clock.advance(30 * MINUTE)
    expect(await accepted(old)).toBe('alice')
    await settle()
    world.clock.advance(40 * MINUTE)
    expect((await refused(old)).status).toBe(503)
  })

  it('shrink when the provider takes one away', async () => {
    world.serveKeys([old, fresh])
    await accepted(old)
    await accepted(fresh)
    world.serveKeys([fresh])
    world.clock.advance(10 * MINUTE)
    await accepted(old)
    await settle()
    expect((await refused(old)).code).toBe('invalid_token')
    expect(await accepted(fresh)).toBe('alice')
  })
})

describe('a provider that does not answer', () => {
  it('is 503 with Retry-After, and asked again after 1 s, then every 2 s only', async () => {
    world.on(JWKS_URL, unreachable)
    const askedAfter: number[] = []
    for (let second = 0; second < 12; second++) {
      const before = world.asked(JWKS_URL)
      const failure = await refused(old)
      expect(failure.status).toBe(503)
      expect(failure.retryAfterSeconds).toBeGreaterThanOrEqual(1)
      if (world.asked(JWKS_URL) > before) askedAfter.push(second)
      world.clock.advance(1000)
    }
    expect(askedAfter).toEqual([0, 1, 3, 5, 7, 9, 11])
    world.serveKeys([old])
    world.clock.advance(1000)
    expect(await accepted(old)).toBe('alice')
  })

  it('is asked again at once after the clock of the machine was set back', async () => {
    world.on(JWKS_URL, unreachable)
    expect((await refused(old)).status).toBe(503)
    world.serveKeys([old])
    world.clock.advance(-HOUR)
    expect(await accepted(old)).toBe('alice')
    expect((await refused(fresh)).status).toBe(401)
    world.serveKeys([old, fresh])
    world.clock.advance(-HOUR)
    expect(await accepted(fresh)).toBe('alice')
  })

  it.each([429, 500, 502, 503, 504])('because of status %d is 503', async (code) => {
    world.on(JWKS_URL, () => status(code, { 'retry-after': '17' }))
    expect(await refused(old)).toMatchObject({ code: 'identity_provider_unavailable', retryAfterSeconds: 17 })
  })

  it.each([201, 204, 400, 401, 403, 404, 410])('usefully, with status %d, is 502', async (code) => {
    world.on(JWKS_URL, () => status(code))
    expect(await refused(old)).toMatchObject({ code: 'identity_provider_error', status: 502 })
  })

  it('is logged once when it fails and once when it recovers, without the response text', async () => {
    world.on(JWKS_URL, () => status(500))
    for (let count = 0; count < 5; count++) {
      await refused(old)
      world.clock.advance(60_000)
    }
    world.serveKeys([old])
    await accepted(old)
    expect(world.log.lines).toHaveLength(2)
    expect(world.log.lines.join()).not.toContain('html')
    expect(world.metrics.value('extauth_provider_requests_total', 'corporate', 'keys', 'ok')).toBe(1)
  })
})
