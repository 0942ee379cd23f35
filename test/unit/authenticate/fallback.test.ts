import { describe, expect, it } from 'vitest'
import { ecKey, rsaKey, signed, type TestKey } from '../../support/authenticate/keys.ts'
import {
  AUDIENCE,
  callerOf,
  createWorld,
  INTROSPECTION_URL,
  ISSUER,
  json,
  JWKS_URL,
  provider,
  refusalOf,
  unreachable,
} from '../../support/authenticate/world.ts'

const known = await rsaKey({ kid: 'known' })
const unknown = await rsaKey({ kid: 'unknown' })
const imposter = await rsaKey({ kid: 'known' })
const own = await ecKey('P-256', { kid: 'own' })
const twin = await rsaKey({ kid: 'known' })

const start = createWorld().nowSeconds()
const claims = { iss: ISSUER, aud: AUDIENCE, sub: 'alice', exp: start + 600 }
const token = (key: TestKey, changes: object = {}) =>
  signed(key, { alg: 'RS256', kid: key.jwk.kid }, { ...claims, ...changes })
const answer = { active: true, sub: 'alice', aud: AUDIENCE, groups: ['from the answer'] }

const setUp = (respond = () => json(answer)) => {
  const world = createWorld()
  world.serveKeys([known])
  world.on(INTROSPECTION_URL, respond)
  return { world, authenticator: world.authenticator([provider({ introspectionUrl: INTROSPECTION_URL })]) }
}

describe('a JWT of a provider that introspects', () => {
  it('that verifies is not introspected', async () => {
    const { world, authenticator } = setUp()
    expect((await callerOf(authenticator, await token(known))).claims['groups']).toBeUndefined()
    expect(world.asked(INTROSPECTION_URL)).toBe(0)
  })

  it.each<[string, () => Promise<string>]>([
    ['with a wrong signature', () => token(imposter)],
    ['with an unknown kid', () => token(unknown)],
  ])('%s is introspected: the answer counts', async (_name, make) => {
    const { authenticator } = setUp()
    const caller = await callerOf(authenticator, await make())
    expect(caller).toMatchObject({ format: 'jwt', subject: 'alice' })
    expect(caller.claims['groups']).toEqual(['from the answer'])
    const { authenticator: strict } = setUp(() => json({ active: false }))
    expect((await refusalOf(strict, await make())).status).toBe(401)
  })

  it('with an unknown kid is introspected after one refresh', async () => {
    const { world, authenticator } = setUp()
    await callerOf(authenticator, await token(known))
    await callerOf(authenticator, await token(unknown))
    expect(world.calls.map((call) => call.url)).toEqual([JWKS_URL, JWKS_URL, INTROSPECTION_URL])
  })

  it('is introspected when several keys fit, and when the keys cannot be had', async () => {
    const ambiguous = setUp()
    ambiguous.world.serveKeys([known, twin])
    await callerOf(ambiguous.authenticator, await token(known))
    expect(ambiguous.world.asked(INTROSPECTION_URL)).toBe(1)
    const down = setUp()
    down.world.on(JWKS_URL, unreachable)
    await callerOf(down.authenticator, await token(known))
    expect(down.world.asked(INTROSPECTION_URL)).toBe(1)
  })

  it('is 503 when neither keys nor introspection can be had', async () => {
    const { world, authenticator } = setUp()
    world.on(JWKS_URL, unreachable)
    world.on(INTROSPECTION_URL, unreachable)
    expect((await refusalOf(authenticator, await token(known))).status).toBe(503)
  })

  it.each<[string, object, string]>([
    ['exp', { exp: start - 60 }, 'expired_token'],
    ['nbf', { nbf: start + 60 }, 'invalid_token'],
    ['aud', { aud: 'other' }, 'invalid_token'],
    ['iss', { iss: 'https://evil.example.com' }, 'invalid_token'],
  ])('with a wrong %s is rejected without a request to a provider', async (_name, changes, code) => {
    const { world, authenticator } = setUp()
    expect((await refusalOf(authenticator, await token(imposter, changes))).code).toBe(code)
    expect(world.calls).toEqual([])
  })

  it.each([
    [60_000, 0],
    [1000, 1],
  ])('for whose keys %i ms were lost is introspected if it is still valid: %i', async (lostMs, times) => {
    const { world, authenticator } = setUp()
    world.on(JWKS_URL, (request) => {
      world.clock.advance(lostMs)
      return unreachable(request)
    })
    const jwt = await token(known, { exp: start + 10 })
    if (times === 1) expect((await callerOf(authenticator, jwt)).subject).toBe('alice')
    else expect((await refusalOf(authenticator, jwt)).code).toBe('expired_token')
    expect(world.asked(INTROSPECTION_URL)).toBe(times)
  })

  it('that expires while it is introspected is not accepted', async () => {
    const { world, authenticator } = setUp()
    world.on(INTROSPECTION_URL, () => {
      world.clock.advance(60_000)
      return json(answer)
    })
    expect((await refusalOf(authenticator, await token(imposter, { exp: start + 10 }))).code).toBe('expired_token')
  })

  it('ends with its own exp, whatever the answer says', async () => {
    const { authenticator } = setUp(() => json({ ...answer, exp: start + 86_400 }))
    expect((await callerOf(authenticator, await token(imposter))).expiresAtMs).toBe((start + 600) * 1000)
    const { authenticator: shorter } = setUp(() => json({ ...answer, exp: start + 60 }))
    expect((await callerOf(shorter, await token(imposter))).expiresAtMs).toBe((start + 60) * 1000)
  })
})

describe('providers that share an issuer', () => {
  const two = () => {
    const world = createWorld()
    world.serveKeys([known])
    world.serveKeys([own], {}, `${ISSUER}/other-jwks`)
    const second = { name: 'second', audience: 'second', jwksUrl: `${ISSUER}/other-jwks` }
    return { world, authenticator: world.authenticator([provider(), provider(second)]) }
  }
  const es256 = (changes: object) => signed(own, { alg: 'ES256', kid: 'own' }, { ...claims, ...changes })

  it('are selected by the audience', async () => {
    const { authenticator } = two()
    expect((await callerOf(authenticator, await token(known))).provider).toBe('corporate')
    expect((await callerOf(authenticator, await es256({ aud: 'second' }))).provider).toBe('second')
  })

  it('do not lend each other their keys or audiences', async () => {
    const { authenticator } = two()
    expect((await refusalOf(authenticator, await es256({}))).code).toBe('invalid_token')
    expect((await refusalOf(authenticator, await token(known, { aud: 'second' }))).code).toBe('invalid_token')
    expect((await refusalOf(authenticator, await token(known, { aud: 'third' }))).code).toBe('invalid_token')
  })

  it('both count for a token of both audiences: either key will do', async () => {
    const { authenticator } = two()
    const aud = [AUDIENCE, 'second']
    expect((await callerOf(authenticator, await token(known, { aud }))).provider).toBe('corporate')
    expect((await callerOf(authenticator, await es256({ aud }))).provider).toBe('second')
  })

  it('do not wait for each other', async () => {
    const { world, authenticator } = two()
    world.on(JWKS_URL, () => new Promise(() => undefined))
    expect((await callerOf(authenticator, await es256({ aud: [AUDIENCE, 'second'] }))).provider).toBe('second')
  })

  it('say that a token has expired when that is all that is wrong with it', async () => {
    const { authenticator } = two()
    expect((await refusalOf(authenticator, await es256({ aud: 'second', exp: start - 60 }))).code).toBe('expired_token')
  })
})
