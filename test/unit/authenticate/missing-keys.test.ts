import { beforeEach, describe, expect, it, vi } from 'vitest'
import { ecKey, jwks } from '../../support/authenticate/keys.ts'
import {
  callerOf,
  createWorld,
  INTROSPECTION_URL,
  json,
  JWKS_URL,
  provider,
  type Respond,
  unreachable,
  type World,
} from '../../support/authenticate/world.ts'

const key = await ecKey('P-256', { kid: 'one' })
const other = await ecKey('P-256', { kid: 'two' })
const atHand = (world: World) => world.metrics.value('extauth_provider_keys', 'corporate')

let world: World
beforeEach(() => {
  world = createWorld()
})

describe('a provider whose keys', () => {
  it('are served in the media type of key sets only has them', async () => {
    world.serveKeys([key, other])
    const authenticator = world.authenticator([provider()])
    await authenticator.start()
    expect(authenticator.withoutKeys()).toEqual([])
    expect(atHand(world)).toBe(2)
    expect(world.calls[0]?.request.headers).toMatchObject({ accept: 'application/json, application/jwk-set+json' })
    await authenticator.close()
  })

  it('never came is named until they come, and the gauge is 0', async () => {
    world.on(JWKS_URL, unreachable)
    const authenticator = world.authenticator([
      provider(),
      provider({ name: 'other', jwksUrl: 'https://other.example/jwks' }),
    ])
    expect(authenticator.withoutKeys()).toEqual([])
    await authenticator.start()
    expect(authenticator.withoutKeys()).toEqual(['corporate', 'other'])
    expect([world.metrics.names.has('extauth_provider_keys'), atHand(world)]).toEqual([true, 0])
    world.serveKeys([key])
    world.clock.advance(2000)
    await authenticator.start()
    expect(authenticator.withoutKeys()).toEqual(['other'])
    expect(atHand(world)).toBe(1)
    await authenticator.close()
  })

  it('came once is not named when it goes away', async () => {
    world.serveKeys([key])
    const authenticator = world.authenticator([provider()])
    await authenticator.start()
    world.on(JWKS_URL, unreachable)
    world.clock.advance(3_600_000)
    await authenticator.start()
    expect(authenticator.withoutKeys()).toEqual([])
    expect(atHand(world)).toBe(1)
    await authenticator.close()
  })

  it('are not needed, because it introspects, has no gauge', async () => {
    const authenticator = world.authenticator([provider({ jwksUrl: undefined, introspectionUrl: INTROSPECTION_URL })])
    await authenticator.start()
    expect(authenticator.withoutKeys()).toEqual([])
    expect(world.metrics.text()).not.toContain('extauth_provider_keys')
    await authenticator.close()
  })
})

describe('a response after its provider was closed changes no metric and is not logged', () => {
  const introspects = { jwksUrl: undefined, introspectionUrl: INTROSPECTION_URL }
  it.each<[string, string, object, Respond]>([
    ['keys', JWKS_URL, {}, () => json(jwks([key]))],
    ['no keys', JWKS_URL, {}, unreachable],
    ['what a token is', INTROSPECTION_URL, introspects, () => json({ active: false })],
    ['no word of a token', INTROSPECTION_URL, introspects, unreachable],
  ])('%s', async (_name, url, more, answer) => {
    const late = Promise.withResolvers<void>()
    world.on(url, async (request) => {
      await late.promise
      return answer(request)
    })
    const authenticator = world.authenticator([provider(more)])
    const asked: Promise<unknown> = url === JWKS_URL ? authenticator.start() : callerOf(authenticator, 'opaque-1')
    const ended = asked.catch(() => undefined)
    await vi.waitFor(() => expect(world.asked(url)).toBe(1))
    const ofProviders = () => world.metrics.text().match(/^extauth_provider.*$/gm)
    const before = ofProviders()
    await authenticator.close()
    late.resolve()
    await ended
    expect([ofProviders(), world.log.lines]).toEqual([before, []])
  })
})
