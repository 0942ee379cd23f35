import { beforeEach, describe, expect, it } from 'vitest'
import type { Authenticator } from '../../../src/authenticate/index.ts'
import { ecKey, signed } from '../../support/authenticate/keys.ts'
import {
  AUDIENCE,
  bearer,
  callerOf,
  createWorld,
  failureOf,
  INTROSPECTION_URL,
  ISSUER,
  json,
  JWKS_URL,
  provider,
  refusalOf,
  status,
  tokenIn,
  type World,
} from '../../support/authenticate/world.ts'

const key = await ecKey('P-256', { kid: 'one' })
let world: World
let authenticator: Authenticator

const jwt = (changes: object = {}) =>
  signed(
    key,
    { alg: 'ES256', kid: 'one' },
    { iss: ISSUER, aud: AUDIENCE, sub: 'alice', exp: world.nowSeconds() + 3600, ...changes },
  )

beforeEach(() => {
  world = createWorld()
  world.serveKeys([key], { 'cache-control': 'max-age=86400' })
  world.on(INTROSPECTION_URL, (request) =>
    json({ active: tokenIn(request).startsWith('good'), sub: 'bob', aud: AUDIENCE }),
  )
  const opaque = {
    name: 'opaque',
    introspectionUrl: INTROSPECTION_URL,
    jwksUrl: undefined,
    issuerUrl: 'https://o.example',
  }
  authenticator = world.authenticator([provider(), provider(opaque)])
})

describe('an accepted token', () => {
  it('gives the same caller at once, without a promise', async () => {
    const token = await jwt()
    const caller = await callerOf(authenticator, token)
    expect(authenticator.authenticate(bearer(token), '')).toBe(caller)
    expect(world.metrics.value('extauth_authentications_total', 'remembered')).toBe(1)
  })

  it.each(['bearer TOKEN', 'Bearer   TOKEN', 'BEARER TOKEN'])('is known again as %j', async (writing) => {
    const token = await jwt()
    const caller = await callerOf(authenticator, token)
    expect(authenticator.authenticate([writing.replace('TOKEN', token)], '')).toBe(caller)
  })

  it('is not known by more than itself', async () => {
    const token = await jwt()
    await callerOf(authenticator, token)
    for (const malformed of [`Bearer ${token}é`, `Bearer ${token} `, `Bearer "${token}"`, 'Bearer ', `Basic ${token}`])
      expect([malformed, (await failureOf(() => authenticator.authenticate([malformed], ''))).status]).toEqual([
        malformed,
        401,
      ])
    const twice = await failureOf(() => authenticator.authenticate([...bearer(token), ...bearer(token)], ''))
    expect(twice.status).toBe(400)
  })

  it('is verified again after 5 minutes', async () => {
    const token = await jwt()
    const caller = await callerOf(authenticator, token)
    world.clock.advance(299_999)
    expect(await callerOf(authenticator, token)).toBe(caller)
    world.clock.advance(1)
    expect(await callerOf(authenticator, token)).not.toBe(caller)
    expect(world.metrics.value('extauth_authentications_total', 'accepted')).toBe(2)
  })

  it('is rejected after its expiry (and the tolerance), cached or not', async () => {
    const token = await jwt({ exp: world.nowSeconds() + 10 })
    const caller = await callerOf(authenticator, token)
    world.clock.advance(14_999)
    expect(await callerOf(authenticator, token)).toBe(caller)
    world.clock.advance(1)
    expect((await refusalOf(authenticator, token)).code).toBe('expired_token')
  })

  it('is introspected again after a minute, and refused then if it was revoked', async () => {
    const caller = await callerOf(authenticator, 'good-1')
    world.clock.advance(59_999)
    expect(await callerOf(authenticator, 'good-1')).toBe(caller)
    expect(world.asked(INTROSPECTION_URL)).toBe(1)
    world.on(INTROSPECTION_URL, () => json({ active: false }))
    world.clock.advance(1)
    expect((await refusalOf(authenticator, 'good-1')).code).toBe('invalid_token')
    expect(world.asked(INTROSPECTION_URL)).toBe(2)
  })

  it('is not introspected longer than to its exp', async () => {
    const exp = world.nowSeconds() + 10
    world.on(INTROSPECTION_URL, () => json({ active: true, aud: AUDIENCE, exp }))
    await callerOf(authenticator, 'good-1')
    world.clock.advance(15_000)
    expect((await refusalOf(authenticator, 'good-1')).code).toBe('expired_token')
  })

  it('that nearly equals another is another', async () => {
    const caller = await callerOf(authenticator, 'good-1')
    expect(await callerOf(authenticator, 'good-2')).not.toBe(caller)
    expect(await callerOf(authenticator, 'good-1=')).not.toBe(caller)
  })

  it('does not outlive the authenticator', async () => {
    const token = await jwt()
    await callerOf(authenticator, token)
    await authenticator.close()
    await callerOf(world.authenticator([provider()]), token)
    expect(world.asked(JWKS_URL)).toBe(2)
  })
})

describe('a refused token', () => {
  it('is refused for 10 s without asking again', async () => {
    const failure = await refusalOf(authenticator, 'bad')
    world.clock.advance(9_999)
    expect(await refusalOf(authenticator, 'bad')).toBe(failure)
    expect(world.asked(INTROSPECTION_URL)).toBe(1)
    world.clock.advance(1)
    await refusalOf(authenticator, 'bad')
    expect(world.asked(INTROSPECTION_URL)).toBe(2)
  })

  it('is looked at again after the clock was set back, and an accepted one that was introspected, too', async () => {
    world.on(INTROSPECTION_URL, () => json({ active: true, aud: AUDIENCE }))
    await callerOf(authenticator, 'good-1')
    world.on(INTROSPECTION_URL, () => json({ active: false }))
    await refusalOf(authenticator, 'bad')
    expect(world.asked(INTROSPECTION_URL)).toBe(2)
    world.clock.advance(-3_600_000)
    for (const token of ['bad', 'good-1']) await refusalOf(authenticator, token)
    expect(world.asked(INTROSPECTION_URL)).toBe(4)
  })

  it('because it is not valid yet is accepted as soon as it is', async () => {
    const token = await jwt({ nbf: world.nowSeconds() + 31 })
    expect((await refusalOf(authenticator, token)).code).toBe('invalid_token')
    // The tolerance is 30 s.
    world.clock.advance(1000)
    expect((await callerOf(authenticator, token)).subject).toBe('alice')
  })

  it('evicts no accepted one, however many there are', async () => {
    const token = await jwt()
    const caller = await callerOf(authenticator, token)
    for (let count = 0; count < 12_000; count++) await refusalOf(authenticator, `bad-${count}`)
    expect(authenticator.authenticate(bearer(token), '')).toBe(caller)
  })
})

describe('a token that could not be validated', () => {
  it('is not cached', async () => {
    world.on(INTROSPECTION_URL, () => status(500))
    expect((await refusalOf(authenticator, 'good-1')).status).toBe(503)
    world.on(INTROSPECTION_URL, () => json({ active: true, aud: AUDIENCE }))
    expect((await callerOf(authenticator, 'good-1')).issuer).toBe('https://o.example')
  })
})

describe('many requests with one cold token', () => {
  it('are one question, and one caller', async () => {
    const callers = await Promise.all(Array.from({ length: 100 }, () => callerOf(authenticator, 'good-1')))
    expect(new Set(callers).size).toBe(1)
    expect(world.asked(INTROSPECTION_URL)).toBe(1)
    expect(world.metrics.value('extauth_authentications_total', 'accepted')).toBe(1)
  })

  it('are one verification if no provider has to be asked', async () => {
    await authenticator.start()
    const token = await jwt()
    const callers = await Promise.all(Array.from({ length: 100 }, () => callerOf(authenticator, token)))
    expect(new Set(callers).size).toBe(1)
    expect(world.metrics.value('extauth_authentications_total', 'accepted')).toBe(1)
    await authenticator.close()
  })

  it('share a failure too, and the next one asks again', async () => {
    world.on(INTROSPECTION_URL, () => status(500))
    const failures = await Promise.all(Array.from({ length: 100 }, () => refusalOf(authenticator, 'good-1')))
    expect(new Set(failures.map((failure) => failure.code))).toEqual(new Set(['identity_provider_unavailable']))
    expect(world.asked(INTROSPECTION_URL)).toBe(1)
    await refusalOf(authenticator, 'good-1')
    expect(world.asked(INTROSPECTION_URL)).toBe(2)
  })
})

describe('a provider that hangs', () => {
  it('delays only the tokens that need it, and not without bound', async () => {
    world.on(INTROSPECTION_URL, () => new Promise(() => undefined))
    const waiting = Array.from({ length: 4096 }, (_, count) => authenticator.authenticate(bearer(`good-${count}`), ''))
    expect(waiting.every((one) => one instanceof Promise)).toBe(true)
    const failure = await refusalOf(authenticator, 'good-4096')
    expect(failure).toMatchObject({ code: 'overloaded', status: 503, retryAfterSeconds: 1 })
  })

  it('does not hold up a JWT of another', async () => {
    world.on(INTROSPECTION_URL, () => new Promise(() => undefined))
    void authenticator.authenticate(bearer('good-1'), '')
    expect((await callerOf(authenticator, await jwt())).subject).toBe('alice')
  })
})

describe('questions to the providers', () => {
  it('for 100,000 requests of 100 callers are 1 for JWTs with jwksUrl and 1 a minute for each opaque token', async () => {
    const tokens = await Promise.all(Array.from({ length: 50 }, (_, count) => jwt({ sub: `caller-${count}` })))
    const opaque = Array.from({ length: 50 }, (_, count) => `good-${count}`)
    for (let round = 0; round < 1000; round++) {
      if (round === 500) world.clock.advance(60_000)
      for (const token of [...tokens, ...opaque]) await authenticator.authenticate(bearer(token), '')
    }
    expect(world.asked(JWKS_URL)).toBe(1)
    expect(world.asked(INTROSPECTION_URL)).toBe(100)
    expect(world.calls).toHaveLength(101)
  })

  it('for 100,000 requests of 100 callers are 2 with discovery', async () => {
    const discovering = world.authenticator([{ name: 'd', issuerUrl: ISSUER, audience: AUDIENCE }])
    world.on(`${ISSUER}/.well-known/openid-configuration`, () => json({ issuer: ISSUER, jwks_uri: JWKS_URL }))
    const tokens = await Promise.all(Array.from({ length: 100 }, (_, count) => jwt({ sub: `caller-${count}` })))
    for (let round = 0; round < 1000; round++)
      for (const token of tokens) await discovering.authenticate(bearer(token), '')
    expect(world.calls).toHaveLength(2)
  })
})
