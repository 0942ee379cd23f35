import { beforeEach, describe, expect, it } from 'vitest'
import { ecKey } from './keys.ts'
import { createWorld, INTROSPECTION_URL, JWKS_URL, provider, unreachable, type World } from './world.ts'

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
