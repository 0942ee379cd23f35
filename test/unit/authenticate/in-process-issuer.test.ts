import { createPublicKey } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import { createAuthenticator, protectedResourceMetadata } from '../../../src/authenticate/index.ts'
import type { Claims, InProcessIssuer, IssuerKey } from '../../../src/core/index.ts'
import { authSection } from '../../../src/resources/index.ts'
import { ecKey, rsaKey, signed, type TestKey } from '../../support/authenticate/keys.ts'
import {
  AUDIENCE,
  bearer,
  callerOf,
  createWorld,
  ISSUER,
  provider,
  refusalOf,
  type World,
} from '../../support/authenticate/world.ts'

const OURS = 'https://mcp.example.com/as'
const RESOURCE = 'https://mcp.example.com/github'
const key = await ecKey('P-256', { kid: 'ours' })
const next = await ecKey('P-256', { kid: 'next' })
const theirs = await rsaKey({ kid: 'theirs' })

const issuerKey = ({ privateKey, jwk }: TestKey, alg = 'ES256'): IssuerKey => ({
  kid: jwk.kid ?? '',
  alg,
  publicKey: createPublicKey(privateKey),
})

let world: World
let keys: IssuerKey[]
let revoked: Set<unknown>
let forgotten: Set<unknown>
let asked: Claims[]
const issuer: InProcessIssuer = {
  issuer: OURS,
  keys: () => keys,
  isRevoked: (claims) => {
    asked.push(claims)
    return revoked.has(claims['tsid'])
  },
  hasSession: ({ tsid }) => Promise.resolve(!forgotten.has(tsid)),
}

beforeEach(() => {
  world = createWorld()
  world.serveKeys([theirs])
  keys = [issuerKey(key)]
  revoked = new Set()
  forgotten = new Set()
  asked = []
})

const open = (audiences: readonly string[] = [RESOURCE], providers: readonly object[] = [provider()]) =>
  world.authenticator(
    providers,
    {},
    audiences.map((audience) => ({ issuer, audience })),
  )

const token = (claims: object = {}, header: object = {}, by = key) =>
  signed(
    by,
    { alg: 'ES256', kid: by.jwk.kid, typ: 'at+jwt', ...header },
    { iss: OURS, aud: RESOURCE, sub: 'alice', tsid: 's1', exp: world.nowSeconds() + 600, ...claims },
  )

describe('a token of an issuer in this process', () => {
  it('is verified with its keys, without HTTP', async () => {
    const caller = await callerOf(open(), await token())
    expect(caller).toMatchObject({ issuer: OURS, subject: 'alice', identity: 'sub:alice', format: 'jwt' })
    expect(world.calls).toEqual([])
  })

  it.each<[string, () => Promise<string>]>([
    ['another typ', () => token({}, { typ: 'JWT' })],
    ['no typ', () => token({}, { typ: undefined })],
    ['a typ that is no string', () => token({}, { typ: ['at+jwt'] })],
    ['crit', () => token({}, { crit: ['b64'], b64: true })],
    ['another audience', () => token({ aud: 'https://mcp.example.com/other' })],
    ['no audience', () => token({ aud: undefined })],
    ['no exp', () => token({ exp: undefined })],
    ['a subject that is no string', () => token({ sub: 7 })],
    ['a foreign key', () => token({}, {}, next)],
    ['a foreign key with the kid of this issuer', () => token({}, { kid: 'ours' }, next)],
    ['no kid', () => token({}, { kid: undefined })],
    ['another alg', () => token({}, { alg: 'RS256', kid: 'ours' }, theirs)],
    [
      'a payload that was changed',
      async () => (await token()).replace(/\.[^.]+\./, `.${(await token({ sub: 'root' })).split('.')[1]}.`),
    ],
  ])('is refused with %s', async (_what, make) => {
    expect(await refusalOf(open(), await make())).toMatchObject({
      code: 'invalid_token',
      challenge: { error: 'invalid_token' },
    })
    expect(world.calls).toEqual([])
  })

  it('is refused as expired at its end', async () => {
    expect(await refusalOf(open(), await token({ exp: world.nowSeconds() - 6 }))).toMatchObject({
      code: 'expired_token',
    })
  })

  it.each(['at+jwt', 'AT+JWT', 'application/at+jwt'])('may say that it is an access token as %s', async (typ) => {
    expect((await callerOf(open(), await token({}, { typ }))).subject).toBe('alice')
  })

  it('is accepted for each audience that is given for its route, and for no other', async () => {
    const authenticator = open([RESOURCE, `${RESOURCE}/two`])
    expect((await callerOf(authenticator, await token({ aud: [`${RESOURCE}/two`] }))).subject).toBe('alice')
    expect((await refusalOf(authenticator, await token({ aud: `${RESOURCE}/three` }))).status).toBe(401)
  })

  it('is taken with a key that was added, and not with one that is gone', async () => {
    const authenticator = open()
    keys = [issuerKey(next), issuerKey(key)]
    expect((await callerOf(authenticator, await token({ sub: 'a' }, {}, next))).subject).toBe('a')
    keys = [issuerKey(next)]
    expect((await refusalOf(authenticator, await token({ sub: 'b' }))).status).toBe(401)
  })
})

describe('a session that is revoked', () => {
  it('invalidates a cached token at once', async () => {
    const authenticator = open()
    const caller = await token()
    await callerOf(authenticator, caller)
    asked = []
    expect(authenticator.authenticate(bearer(caller), '')).toMatchObject({ subject: 'alice' })
    expect(asked).toMatchObject([{ tsid: 's1' }])
    revoked.add('s1')
    expect(await refusalOf(authenticator, caller)).toMatchObject({
      code: 'invalid_token',
      challenge: { error: 'invalid_token' },
    })
  })

  it('lets no token in that was not seen before', async () => {
    revoked.add('s1')
    expect((await refusalOf(open(), await token())).code).toBe('invalid_token')
    expect((await callerOf(open(), await token({ tsid: 's2' }))).subject).toBe('alice')
  })
})

it('a session that is nowhere lets no token in', async () => {
  forgotten.add('s1')
  expect((await refusalOf(open(), await token())).code).toBe('invalid_token')
  expect((await callerOf(open(), await token({ tsid: 's2' }))).subject).toBe('alice')
})

describe('beside the providers of the auth section', () => {
  it('both kinds of token are accepted', async () => {
    const authenticator = open()
    const other = await signed(
      theirs,
      { alg: 'RS256', kid: 'theirs' },
      { iss: ISSUER, aud: AUDIENCE, sub: 'bob', exp: world.nowSeconds() + 600 },
    )
    expect((await callerOf(authenticator, other)).subject).toBe('bob')
    expect((await callerOf(authenticator, await token())).subject).toBe('alice')
    expect(asked).toHaveLength(1)
  })

  it('a provider of the same issuer is not asked', async () => {
    const authenticator = open([RESOURCE], [provider({ issuerUrl: OURS, audience: RESOURCE })])
    expect((await refusalOf(authenticator, await token({}, { typ: 'JWT' }))).status).toBe(401)
    expect((await callerOf(authenticator, await token())).subject).toBe('alice')
    expect(world.calls).toEqual([])
  })

  it('the metadata name our issuer first, and each once', () => {
    const auth = authSection().parse({ mode: 'oauth', oauth: { resourceUrl: RESOURCE, providers: [provider()] } })
    const document = protectedResourceMetadata({ resourceUrl: RESOURCE, auth, ownIssuers: [OURS, OURS] })
    expect(document.authorization_servers).toEqual([OURS, ISSUER])
  })
})

it('callers that are anonymous need no authorization server', () => {
  const { clock, log, metrics } = world
  const deps = { clock, log, metrics, outbound: () => expect.fail('nothing is called') }
  expect(() => createAuthenticator({ mode: 'anonymous' }, deps, [{ issuer, audience: RESOURCE }])).toThrow(
    'config_error',
  )
})
