import { describe, expect, it } from 'vitest'
import { jwks, rsaKey, signed } from '../../support/authenticate/keys.ts'
import {
  AUDIENCE,
  callerOf,
  createWorld,
  json,
  refusalOf,
  status,
  unreachable,
} from '../../support/authenticate/world.ts'

const key = await rsaKey({ kid: 'one' })

const setUp = (issuerUrl: string) => {
  const world = createWorld()
  let serial = 0
  return {
    world,
    authenticator: world.authenticator([{ name: 'discovered', issuerUrl, audience: AUDIENCE }]),
    token: () => {
      const exp = world.nowSeconds() + 7200
      return signed(
        key,
        { alg: 'RS256', kid: 'one' },
        { iss: issuerUrl, aud: AUDIENCE, sub: 'alice', exp, jti: serial++ },
      )
    },
  }
}

const OIDC = '/.well-known/openid-configuration'
const OAUTH = '/.well-known/oauth-authorization-server'

describe('discovery', () => {
  it.each([
    ['https://id.example.com', `https://id.example.com${OIDC}`],
    ['https://id.example.com/', `https://id.example.com${OIDC}`],
    ['https://id.example.com/realms/a', `https://id.example.com/realms/a${OIDC}`],
    ['https://id.example.com/realms/a/', `https://id.example.com/realms/a${OIDC}`],
    ['https://id.example.com//', `https://id.example.com/${OIDC}`],
    ['https://id.example.com/realms/a', `https://id.example.com${OAUTH}/realms/a`],
    ['https://id.example.com/realms/a/', `https://id.example.com${OAUTH}/realms/a`],
    ['https://id.example.com/', `https://id.example.com${OAUTH}`],
  ])('of %s finds the keys by the document at %s', async (issuer, url) => {
    const { world, authenticator, token } = setUp(issuer)
    world.on(url, () => json({ issuer, jwks_uri: 'https://keys.example.net/jwks' }))
    world.on('https://keys.example.net/jwks', () => json(jwks([key])))
    expect((await callerOf(authenticator, await token())).issuer).toBe(issuer)
    expect(world.calls.length).toBe(url.includes(OIDC) ? 2 : 3)
  })

  const issuer = 'https://id.example.com'
  it.each<[string, object]>([
    ['another issuer', { issuer: 'https://evil.example.com', jwks_uri: 'https://id.example.com/jwks' }],
    ['the issuer with a slash', { issuer: `${issuer}/`, jwks_uri: 'https://id.example.com/jwks' }],
    ['the issuer in another case', { issuer: 'https://ID.example.com', jwks_uri: 'https://id.example.com/jwks' }],
    ['no issuer', { jwks_uri: 'https://id.example.com/jwks' }],
    ['no jwks_uri', { issuer }],
    ['a jwks_uri that is no text', { issuer, jwks_uri: ['https://id.example.com/jwks'] }],
    ['a jwks_uri that is relative', { issuer, jwks_uri: '/jwks' }],
    ['a jwks_uri in plain http', { issuer, jwks_uri: 'http://id.example.com/jwks' }],
    ['a jwks_uri that is a file', { issuer, jwks_uri: 'file:///etc/jwks' }],
    ['a jwks_uri that is data', { issuer, jwks_uri: `data:application/json,${JSON.stringify(jwks([key]))}` }],
  ])('that names %s is of no use', async (_name, document) => {
    const { world, authenticator, token } = setUp(issuer)
    for (const url of [`${issuer}${OIDC}`, `${issuer}${OAUTH}`]) world.on(url, () => json(document))
    for (const url of ['https://id.example.com/jwks', 'http://id.example.com/jwks'])
      world.on(url, () => json(jwks([key])))
    expect(await refusalOf(authenticator, await token())).toMatchObject({
      code: 'identity_provider_error',
      status: 502,
    })
    expect(world.calls.map((call) => call.url)).toEqual([`${issuer}${OIDC}`, `${issuer}${OAUTH}`])
  })

  it('does not try the other form on a provider that is down', async () => {
    const { world, authenticator, token } = setUp(issuer)
    world.on(`${issuer}${OIDC}`, unreachable)
    expect((await refusalOf(authenticator, await token())).status).toBe(503)
    expect(world.calls).toHaveLength(1)
  })

  it('says 503 when the second form is what is down', async () => {
    const { world, authenticator, token } = setUp(issuer)
    world.on(`${issuer}${OAUTH}`, () => status(503))
    expect((await refusalOf(authenticator, await token())).status).toBe(503)
  })

  it('is cached across key refreshes, and repeated when the key URL changes', async () => {
    const { world, authenticator, token } = setUp(issuer)
    const document = (uri: string) => json({ issuer, jwks_uri: uri }, { 'cache-control': 'max-age=86400' })
    world.on(`${issuer}${OIDC}`, () => document(`${issuer}/a`))
    world.serveKeys([key], {}, `${issuer}/a`)
    await callerOf(authenticator, await token())
    world.clock.advance(600_000)
    await callerOf(authenticator, await token())
    await new Promise((resolve) => setImmediate(resolve))
    expect([world.asked(`${issuer}${OIDC}`), world.asked(`${issuer}/a`)]).toEqual([1, 2])

    world.on(`${issuer}/a`, () => status(404))
    world.on(`${issuer}${OIDC}`, () => document(`${issuer}/b`))
    world.serveKeys([key], {}, `${issuer}/b`)
    for (let minutes = 0; minutes < 12; minutes++) {
      world.clock.advance(60_000)
      await callerOf(authenticator, await token())
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect([world.asked(`${issuer}${OIDC}`), world.asked(`${issuer}/b`)]).toEqual([2, 1])
  })

  it('is not done where jwksUrl is configured, or for a provider of opaque tokens alone', async () => {
    const world = createWorld()
    const authenticator = world.authenticator([
      { name: 'direct', issuerUrl: issuer, audience: AUDIENCE, jwksUrl: `${issuer}/jwks` },
      {
        name: 'opaque',
        issuerUrl: 'https://o.example.com',
        audience: AUDIENCE,
        introspectionUrl: 'https://o.example.com/i',
      },
    ])
    world.on('https://o.example.com/i', () => json({ active: false }))
    await authenticator.start()
    await refusalOf(authenticator, 'an-opaque-token')
    expect(world.calls.map((call) => call.url)).toEqual([`${issuer}/jwks`, 'https://o.example.com/i'])
    await authenticator.close()
  })
})
