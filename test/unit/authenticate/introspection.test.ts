import { describe, expect, it } from 'vitest'
import { OutboundError } from '../../../src/core/index.ts'
import {
  AUDIENCE,
  callerOf,
  createWorld,
  INTROSPECTION_URL,
  ISSUER,
  json,
  refusalOf,
  type Respond,
  status,
  tokenIn,
  unreachable,
} from '../../support/authenticate/world.ts'

const opaque = (more: object = {}): object => ({
  name: 'opaque',
  issuerUrl: ISSUER,
  audience: AUDIENCE,
  introspectionUrl: INTROSPECTION_URL,
  ...more,
})

const setUp = (respond: Respond, more: object = {}) => {
  const world = createWorld()
  world.on(INTROSPECTION_URL, respond)
  return { world, authenticator: world.authenticator([opaque(more)]) }
}
const now = createWorld().nowSeconds()
const active = { active: true, sub: 'alice', aud: AUDIENCE, iss: ISSUER, exp: now + 600 }

describe('an answer that passes', () => {
  it.each<[string, object, object]>([
    ['with all members', {}, {}],
    ['without iss', { iss: undefined }, {}],
    ['without exp', { exp: undefined }, {}],
    ['with aud as an array', { aud: ['other', AUDIENCE] }, {}],
    ['without aud where it is not required', { aud: undefined }, { introspection: { requireAudience: false } }],
    ['with another aud where it is not required', { aud: 'client' }, { introspection: { requireAudience: false } }],
    ['with exp within the tolerance', { exp: now - 4 }, {}],
    ['with nbf in the past', { nbf: now - 1 }, {}],
    ['with null for what is absent', { iss: null, exp: null, nbf: null, iat: null }, {}],
  ])('%s', async (_name, changes, more) => {
    const { authenticator } = setUp(() => json({ ...active, ...changes }), more)
    const caller = await callerOf(authenticator, 'opaque-1')
    expect(caller).toMatchObject({ provider: 'opaque', issuer: ISSUER, subject: 'alice', format: 'opaque' })
  })

  it('makes all its members claims', async () => {
    const { authenticator } = setUp(() =>
      json({ ...active, groups: ['admins'], username: 'al', scope: 'a b', deep: { x: 1 } }),
    )
    const { claims, expiresAtMs } = await callerOf(authenticator, 'opaque-1')
    expect(claims).toMatchObject({ groups: ['admins'], username: 'al', scope: 'a b', deep: { x: 1 }, active: true })
    expect(Object.isFrozen(claims['deep'])).toBe(true)
    expect(expiresAtMs).toBe((now + 600) * 1000)
  })

  it.each<[string, object, string]>([
    ['the user of a client', { client_id: 'c', username: 'alice' }, 'username:["c","alice"]'],
    ['the user where sub is null', { sub: null, client_id: 'c', username: 'alice' }, 'username:["c","alice"]'],
    ['the user without a client', { username: 'alice' }, 'username:["","alice"]'],
    ['the session of a client', { client_id: 'c', sid: 's', username: null }, 'sid:["c","s"]'],
  ])('without sub identifies %s, and warns once', async (_name, changes, identity) => {
    const { world, authenticator } = setUp(() => json({ ...active, sub: undefined, ...changes }))
    expect((await callerOf(authenticator, 'opaque-1')).identity).toBe(identity)
    await callerOf(authenticator, 'opaque-2')
    expect(world.log.lines.filter((line) => line.includes('no sub'))).toHaveLength(1)
    expect(world.log.lines.join()).not.toContain('alice')
  })

  it('without exp has no end that is known', async () => {
    const { authenticator } = setUp(() => json({ ...active, exp: undefined }))
    expect((await callerOf(authenticator, 'opaque-1')).expiresAtMs).toBeUndefined()
  })
})

describe('an answer that refuses', () => {
  it.each<[string, object, string]>([
    ['inactive', { active: false }, 'invalid_token'],
    ['inactive with everything else', { ...active, active: false }, 'invalid_token'],
    ['another audience', { ...active, aud: 'other' }, 'invalid_token'],
    ['no audience', { ...active, aud: undefined }, 'invalid_token'],
    ['another issuer', { ...active, iss: 'https://evil.example.com' }, 'invalid_token'],
    ['an audience that is null', { ...active, aud: null }, 'invalid_token'],
    ['an exp that has passed', { ...active, exp: now - 5 }, 'expired_token'],
    ['an exp that is a text', { ...active, exp: String(now + 60) }, 'invalid_token'],
    ['an nbf to come', { ...active, nbf: now + 31 }, 'invalid_token'],
    ['an iat to come', { ...active, iat: now + 31 }, 'invalid_token'],
    ['a sub that is a number', { ...active, sub: 7 }, 'invalid_token'],
  ])('by %s is 401', async (_name, answer, code) => {
    const { authenticator } = setUp(() => json(answer))
    expect(await refusalOf(authenticator, 'opaque-1')).toMatchObject({ code, status: 401 })
  })

  it('by another issuer, even where the audience is not required', async () => {
    const { authenticator } = setUp(() => json({ ...active, iss: 'x' }), { introspection: { requireAudience: false } })
    expect((await refusalOf(authenticator, 'opaque-1')).code).toBe('invalid_token')
  })
})

describe('what is no answer', () => {
  it.each<[string, Respond]>([
    ['connection refused', unreachable],
    ['a page', () => ({ status: 200, headers: { 'content-type': 'text/html' }, body: Buffer.from('<html>') })],
    ['an empty body', () => ({ status: 200, headers: {}, body: Buffer.alloc(0) })],
    ['no JSON object', () => json([active])],
    ['no active', () => json({ ...active, active: undefined })],
    ['active as a text', () => json({ ...active, active: 'true' })],
    ['active as a number', () => json({ ...active, active: 1 })],
    ['active twice', () => ({ status: 200, headers: {}, body: Buffer.from('{"active":false,"active":true}') })],
    ['bytes that are not UTF-8', () => ({ status: 200, headers: {}, body: Buffer.from([0x7b, 0xff, 0x7d]) })],
    ['201', () => ({ ...json(active), status: 201 })],
    ['302', () => status(302, { location: `${ISSUER}/elsewhere` })],
    ['307 to its own origin', () => status(307, { location: `${ISSUER}/elsewhere` })],
    ['400', () => status(400)],
    ['401', () => status(401)],
    ['403', () => status(403)],
    ['404', () => status(404)],
    ['429', () => status(429)],
    ['500', () => status(500)],
    ['503', () => status(503)],
  ])('%s is 503 and is not cached', async (_name, respond) => {
    const { world, authenticator } = setUp(respond)
    for (let count = 1; count <= 3; count++) {
      const failure = await refusalOf(authenticator, 'opaque-1')
      expect(failure).toMatchObject({ code: 'identity_provider_unavailable', status: 503 })
      expect(failure.retryAfterSeconds).toBeGreaterThanOrEqual(1)
      expect(world.asked(INTROSPECTION_URL)).toBe(count)
    }
    world.on(INTROSPECTION_URL, () => json(active))
    expect((await callerOf(authenticator, 'opaque-1')).subject).toBe('alice')
  })
})

it.each([
  [400, 'invalid_client'],
  [401, 'invalid_client'],
  [401, 'unauthorized_client'],
])('a provider that does not know us, by %i %s, is our configuration: 500', async (code, error) => {
  const { world, authenticator } = setUp(() => ({ ...json({ error }), status: code }))
  const failure = await refusalOf(authenticator, 'opaque-1')
  expect(failure).toMatchObject({ code: 'config_error', status: 500 })
  expect(failure.detail).toContain('provider opaque')
  world.on(INTROSPECTION_URL, () => json(active))
  expect((await callerOf(authenticator, 'opaque-1')).subject).toBe('alice')
})

it('a provider with too many waiting calls is overloaded, and recovers without intervention', async () => {
  const { authenticator } = setUp(() => {
    throw new OutboundError('overloaded')
  })
  expect(await refusalOf(authenticator, 'opaque-1')).toMatchObject({ code: 'overloaded', retryAfterSeconds: 1 })
})

describe('several providers', () => {
  const OTHER = 'https://other.example.com'
  const setUpTwo = (first: Respond, second: Respond) => {
    const world = createWorld()
    world.on(INTROSPECTION_URL, first)
    world.on(`${OTHER}/i`, second)
    const more = { name: 'second', issuerUrl: OTHER, introspectionUrl: `${OTHER}/i` }
    return { world, authenticator: world.authenticator([opaque(), opaque(more)]) }
  }
  const never: Respond = () => new Promise(() => undefined)
  const inactive: Respond = () => json({ active: false })
  const yes: Respond = () => json({ active: true, sub: 'bob', aud: AUDIENCE })

  it('are asked at once, with the token and its kind', async () => {
    const { world, authenticator } = setUpTwo(inactive, yes)
    expect(await callerOf(authenticator, 'opaque-1')).toMatchObject({ provider: 'second', issuer: OTHER })
    expect(world.calls.map((call) => call.name)).toEqual(['opaque introspection', 'second introspection'])
    for (const { request } of world.calls) {
      expect(tokenIn(request)).toBe('opaque-1')
      expect(request).toMatchObject({ method: 'POST', body: 'token=opaque-1&token_type_hint=access_token' })
    }
  })

  it.each<[string, Respond]>([
    ['says no', inactive],
    ['is down', unreachable],
    ['hangs', never],
    ['answers nonsense', () => json({})],
    ['returns another audience', () => json({ ...active, aud: 'other' })],
  ])('take the one that says yes when the other %s', async (_name, other) => {
    for (const pair of [
      [other, yes],
      [yes, other],
    ] as const) {
      const { authenticator } = setUpTwo(...pair)
      expect((await callerOf(authenticator, 'opaque-1')).subject).toBe('bob')
    }
  })

  it('that all say no make 401', async () => {
    const { authenticator } = setUpTwo(inactive, inactive)
    expect((await refusalOf(authenticator, 'opaque-1')).status).toBe(401)
  })

  it('of which one says no and one cannot say make 503, each time', async () => {
    for (const pair of [
      [inactive, unreachable],
      [unreachable, inactive],
    ] as const) {
      const { world, authenticator } = setUpTwo(...pair)
      for (let count = 1; count <= 2; count++) {
        expect((await refusalOf(authenticator, 'opaque-1')).status).toBe(503)
        expect(world.calls).toHaveLength(2 * count)
      }
    }
  })
})
