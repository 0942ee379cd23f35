import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Authenticator } from '../../../src/authenticate/index.ts'
import { jwks, rsaKey, signed } from '../../support/authenticate/keys.ts'
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
  type Respond,
  status,
} from '../../support/authenticate/world.ts'

const key = await rsaKey({ kid: 'one' })
const opened: Authenticator[] = []
let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'extauth-'))
})
afterEach(async () => {
  for (const authenticator of opened.splice(0)) await authenticator.close()
  rmSync(directory, { recursive: true, force: true })
})

const file = (name: string, content: string) => {
  writeFileSync(join(directory, name), content)
  return join(directory, name)
}
const setUp = (entry: object) => {
  const world = createWorld()
  const authenticator = world.authenticator([provider(entry)])
  opened.push(authenticator)
  world.serveKeys([key])
  world.on(INTROSPECTION_URL, () => json({ active: true, aud: AUDIENCE }))
  const jwt = () =>
    signed(key, { alg: 'RS256', kid: 'one' }, { iss: ISSUER, aud: AUDIENCE, exp: world.nowSeconds() + 60 })
  const sent = () => world.calls.map(({ url, request }) => [url, request.headers?.['authorization']])
  return { world, authenticator, jwt, sent }
}

describe('client credentials', () => {
  it('go as HTTP Basic, form-encoded first, without the newline of the file', async () => {
    const clientSecretFile = file('secret', 'p@ss: wörd+/%\n')
    const { world, authenticator, sent } = setUp({
      jwksUrl: undefined,
      introspectionUrl: INTROSPECTION_URL,
      clientId: 'registry:one',
      clientSecretFile,
      authTokenFile: file('token', 'never-sent'),
    })
    await callerOf(authenticator, 'opaque')
    const basic = Buffer.from('registry%3Aone:p%40ss%3A+w%C3%B6rd%2B%2F%25').toString('base64')
    expect(sent()).toEqual([[INTROSPECTION_URL, `Basic ${basic}`]])
    expect(world.calls[0]?.request.body).toBe('token=opaque&token_type_hint=access_token')
  })

  it('without a secret are a client_id in the body', async () => {
    const { world, authenticator, sent } = setUp({ introspectionUrl: INTROSPECTION_URL, clientId: 'public' })
    await callerOf(authenticator, 'opaque')
    expect(sent()).toEqual([[INTROSPECTION_URL, undefined]])
    expect(world.calls[0]?.request.body).toBe('token=opaque&token_type_hint=access_token&client_id=public')
  })

  it('that changed are read again when the provider says 401', async () => {
    const clientSecretFile = file('secret', 'old')
    const { world, authenticator } = setUp({ introspectionUrl: INTROSPECTION_URL, clientId: 'c', clientSecretFile })
    const basic = (secret: string) => `Basic ${Buffer.from(`c:${secret}`).toString('base64')}`
    const accepting: Respond = (request) =>
      request.headers?.['authorization'] === basic('new') ? json({ active: true, aud: AUDIENCE }) : status(401)
    world.on(INTROSPECTION_URL, accepting)
    expect((await refusalOf(authenticator, 'opaque')).status).toBe(503)
    expect(world.calls).toHaveLength(1)
    file('secret', 'new')
    await callerOf(authenticator, 'opaque')
    expect(world.calls.at(-1)?.request.headers?.['authorization']).toBe(basic('new'))
  })

  it('whose file is missing make 500 secret_unavailable, and nothing is asked without them', async () => {
    const clientSecretFile = join(directory, 'absent')
    const { world, authenticator } = setUp({ introspectionUrl: INTROSPECTION_URL, clientId: 'c', clientSecretFile })
    expect(await refusalOf(authenticator, 'opaque')).toMatchObject({ code: 'secret_unavailable', status: 500 })
    expect(world.calls).toEqual([])
    expect(world.log.lines.join()).toContain('clientSecretFile')
  })
})

describe('authTokenFile', () => {
  const KEYS = 'https://keys.example.net/jwks'

  it('authenticates the fetch of the keys and the introspection, as a cluster asks for', async () => {
    const authTokenFile = file('token', 'service-account-token\n')
    const { authenticator, sent, jwt } = setUp({ introspectionUrl: INTROSPECTION_URL, authTokenFile })
    await callerOf(authenticator, await jwt())
    await callerOf(authenticator, 'opaque')
    expect(sent()).toEqual([
      [JWKS_URL, 'Bearer service-account-token'],
      [INTROSPECTION_URL, 'Bearer service-account-token'],
    ])
  })

  it('goes to a jwksUrl on another origin than the issuer, when that was configured', async () => {
    const { world, authenticator, sent, jwt } = setUp({ jwksUrl: KEYS, authTokenFile: file('token', 'sat') })
    world.on(KEYS, () => json(jwks([key])))
    await callerOf(authenticator, await jwt())
    expect(sent()).toEqual([[KEYS, 'Bearer sat']])
  })

  it('goes to the origins that were configured, not to one that the discovery document names', async () => {
    const authTokenFile = file('token', 'sat')
    const { world, authenticator, sent, jwt } = setUp({ jwksUrl: undefined, authTokenFile })
    const discovery = `${ISSUER}/.well-known/openid-configuration`
    world.on(discovery, () => json({ issuer: ISSUER, jwks_uri: KEYS }))
    world.on(KEYS, () => json(jwks([key])))
    await callerOf(authenticator, await jwt())
    expect(sent()).toEqual([
      [discovery, 'Bearer sat'],
      [KEYS, undefined],
    ])
  })

  it('goes with a redirect inside the origin and never to another one', async () => {
    const authTokenFile = file('token', 'sat')
    const { world, authenticator, sent, jwt } = setUp({ authTokenFile })
    world.on(JWKS_URL, () => status(302, { location: '/moved' }))
    world.on(`${ISSUER}/moved`, () => status(301, { location: KEYS }))
    world.on(KEYS, () => json(jwks([key])))
    expect((await refusalOf(authenticator, await jwt())).code).toBe('identity_provider_error')
    expect(sent()).toEqual([
      [JWKS_URL, 'Bearer sat'],
      [`${ISSUER}/moved`, 'Bearer sat'],
    ])
  })

  it('is read again when it changes', async () => {
    const authTokenFile = file('token', 'first')
    const { world, authenticator, jwt, sent } = setUp({ authTokenFile })
    world.on(JWKS_URL, (request) =>
      request.headers?.['authorization'] === 'Bearer second' ? json(jwks([key])) : status(401),
    )
    file('token', 'second')
    await callerOf(authenticator, await jwt())
    expect(sent().at(-1)).toEqual([JWKS_URL, 'Bearer second'])
  })

  it.each([
    ['is empty', ''],
    ['has a line break', 'a\nb: c'],
    ['has spaces', 'a b'],
  ])('that %s is not sent', async (_name, content) => {
    const { world, authenticator, jwt } = setUp({ authTokenFile: file('token', content) })
    expect((await refusalOf(authenticator, await jwt())).code).toBe('secret_unavailable')
    expect(world.calls).toEqual([])
  })
})

describe('redirects', () => {
  it('are followed inside the origin, three at most', async () => {
    const { world, authenticator, jwt } = setUp({})
    world.on(JWKS_URL, () => status(307, { location: '/1' }))
    for (const hop of [1, 2]) world.on(`${ISSUER}/${hop}`, () => status(308, { location: `${ISSUER}/${hop + 1}` }))
    world.on(`${ISSUER}/3`, () => json(jwks([key])))
    await callerOf(authenticator, await jwt())
    const looping = setUp({})
    looping.world.on(JWKS_URL, () => status(302, { location: JWKS_URL }))
    expect((await refusalOf(looping.authenticator, await jwt())).code).toBe('identity_provider_error')
    expect(looping.world.asked(JWKS_URL)).toBe(4)
  })

  it.each([
    ['to another host', 'https://evil.example.com/jwks'],
    ['to another port', `${ISSUER}:8443/jwks`],
    ['to plain http', 'http://id.example.com/jwks'],
    ['by //', '//evil.example.com/jwks'],
    ['to nowhere', ''],
    ['to something that is no URL', 'https://'],
    ['to a file', 'file:///etc/passwd'],
  ])('%s are not followed', async (_name, location) => {
    const { world, authenticator, jwt } = setUp({})
    world.on(JWKS_URL, () => (location === '' ? status(302) : status(302, { location })))
    expect((await refusalOf(authenticator, await jwt())).code).toBe('identity_provider_error')
    expect(world.calls.every((call) => call.url === JWKS_URL)).toBe(true)
  })
})

describe('caCertPath', () => {
  it('that cannot be read causes no request: the system roots are not a fallback', async () => {
    const { world, authenticator, jwt } = setUp({ caCertPath: join(directory, 'absent.pem') })
    expect((await refusalOf(authenticator, await jwt())).code).toBe('config_error')
    expect(world.calls).toEqual([])
  })
})
