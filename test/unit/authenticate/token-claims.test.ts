import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { Secret } from '../../../src/core/index.ts'
import { rsaKey, signed, type TestKey } from '../../support/authenticate/keys.ts'
import { AUDIENCE, callerOf, createWorld, ISSUER, provider, refusalOf } from '../../support/authenticate/world.ts'

const key: TestKey = await rsaKey({ kid: 'one', alg: 'RS256', use: 'sig' })
const world = createWorld()
world.serveKeys([key])
const authenticator = world.authenticator([provider()])
const now = world.nowSeconds()

const good = { iss: ISSUER, aud: AUDIENCE, sub: 'alice', exp: now + 60 }
const token = (changes: object) => signed(key, { alg: 'RS256', kid: 'one' }, { ...good, ...changes })

describe('claims that are accepted', () => {
  it.each<[string, object]>([
    ['the usual ones', {}],
    ['exp with a fraction', { exp: now + 60.5 }],
    ['exp now', { exp: now }],
    ['exp 4.999 s ago, within the tolerance', { exp: now - 4.999 }],
    ['exp in the far future', { exp: 1e12 }],
    ['exp beyond every date', { exp: 1e300 }],
    ['nbf now', { nbf: now }],
    ['nbf long ago', { nbf: 0 }],
    ['nbf before the epoch', { nbf: -1 }],
    ['nbf exactly the tolerance ahead', { nbf: now + 5 }],
    ['aud as an array of one', { aud: [AUDIENCE] }],
    ['aud as an array in which ours is last', { aud: ['a', 'b', AUDIENCE] }],
    ['aud twice the same', { aud: [AUDIENCE, AUDIENCE] }],
    ['no sub', { sub: undefined }],
    ['an empty sub', { sub: '' }],
    ['a sub beyond ASCII', { sub: 'ålice 🙂' }],
    ['iat in the near future', { iat: now + 30 }],
    ['iat that is a text', { iat: 'yesterday' }],
    ['jti that is a number', { jti: 7 }],
    ['groups, nested objects, nulls', { groups: ['a', 'b'], realm_access: { roles: ['x'] }, nothing: null }],
    ['a claim called __proto__', JSON.parse('{"__proto__": {"admin": true}}') as object],
    ['a claim called constructor', { constructor: 'me' }],
  ])('%s', async (_name, changes) => {
    const caller = await callerOf(authenticator, await token(changes))
    expect(caller.issuer).toBe(ISSUER)
    expect(caller.provider).toBe('corporate')
    expect(caller.format).toBe('jwt')
  })
})

describe('a provider for one subject', () => {
  const only = world.authenticator([provider({ subject: 'alice' })])

  it('accepts that one', async () => {
    expect((await callerOf(only, await token({}))).subject).toBe('alice')
  })

  it.each<[string, object]>([
    ['another one', { sub: 'alice2' }],
    ['the same in another case', { sub: 'Alice' }],
    ['none', { sub: undefined }],
  ])('refuses %s', async (_name, changes) => {
    expect((await refusalOf(only, await token(changes))).code).toBe('invalid_token')
  })
})

const ANY_TOKEN: unknown = expect.stringMatching(/^token:[\w-]{43}$/)

describe('who the caller is', () => {
  it.each<[string, object, unknown]>([
    ['the subject', { client_id: 'job', azp: 'job' }, 'sub:alice'],
    [
      'client and sid without a subject',
      { sub: undefined, client_id: 'job', azp: 'other', sid: 's' },
      'sid:["job","s"]',
    ],
    ['authorized party and sid without a client', { sub: undefined, azp: 'job', sid: 's' }, 'sid:["job","s"]'],
    ['client and sid where the subject is empty', { sub: '', client_id: 'job', sid: 's' }, 'sid:["job","s"]'],
    ['the sid alone', { sub: undefined, sid: 's' }, 'sid:["","s"]'],
    ['the token for a client alone', { sub: undefined, client_id: 'job' }, ANY_TOKEN],
    ['the token for a username in a JWT', { sub: undefined, client_id: 'job', username: 'alice' }, ANY_TOKEN],
    ['the token without any', { sub: undefined }, ANY_TOKEN],
    ['the token where sid is no text', { sub: undefined, client_id: 7, azp: ['a'], sid: 1 }, ANY_TOKEN],
    ['a subject that looks like another kind', { sub: 'sid:["job","s"]' }, 'sub:sid:["job","s"]'],
  ])('is %s', async (_name, changes, identity) => {
    const caller = await callerOf(authenticator, await token(changes))
    expect(caller.identity).toEqual(identity)
    expect(Object.isFrozen(caller)).toBe(true)
  })
})

describe('a provider whose tokens name their audience in another claim', () => {
  const cognito = world.authenticator([provider({ audienceClaim: 'client_id' })])

  it('accepts tokens with it', async () => {
    const claims = { aud: undefined, client_id: AUDIENCE, token_use: 'access' }
    expect((await callerOf(cognito, await token(claims))).subject).toBe('alice')
  })

  it.each<[string, object, string]>([
    ['of another client', { aud: undefined, client_id: 'other' }, 'aud is not the audience of this provider'],
    ['with aud alone, such as an ID token', { aud: AUDIENCE, client_id: undefined }, 'aud is missing'],
    ['of another client with the audience in aud', { client_id: 'other' }, 'aud is not the audience of this provider'],
  ])('refuses tokens %s', async (_name, claims, detail) => {
    expect(await refusalOf(cognito, await token(claims))).toMatchObject({ code: 'invalid_token', detail })
  })
})

describe('claims that are refused', () => {
  it.each<[string, object, string]>([
    ['no exp', { exp: undefined }, 'exp is missing'],
    ['exp null', { exp: null }, 'exp is not a number'],
    ['exp as a text', { exp: String(now + 60) }, 'exp is not a number'],
    ['exp true', { exp: true }, 'exp is not a number'],
    ['exp as an array', { exp: [now + 60] }, 'exp is not a number'],
    ['exp as an object', { exp: { at: now } }, 'exp is not a number'],
    ['nbf as a text', { nbf: String(now) }, 'nbf is not a number'],
    ['nbf null', { nbf: null }, 'nbf is not a number'],
    ['nbf a hair beyond the tolerance', { nbf: now + 30.001 }, 'nbf is still to come'],
    ['iat a hair beyond the tolerance', { iat: now + 30.001 }, 'iat is still to come'],
    ['nbf tomorrow', { nbf: now + 86_400 }, 'nbf is still to come'],
    ['nbf in milliseconds', { nbf: now * 1000 }, 'nbf is still to come'],
    ['no aud', { aud: undefined }, 'aud is missing'],
    ['a foreign aud', { aud: 'other' }, 'aud is not the audience of this provider'],
    ['aud null', { aud: null }, 'aud is not the audience of this provider'],
    ['aud a number', { aud: 1 }, 'aud is not the audience of this provider'],
    ['aud an object with ours as a name', { aud: { [AUDIENCE]: true } }, 'aud is not the audience of this provider'],
    ['aud empty', { aud: '' }, 'aud is not the audience of this provider'],
    ['aud an empty array', { aud: [] }, 'aud is not the audience of this provider'],
    ['aud an array without ours', { aud: ['a', 'b'] }, 'aud is not the audience of this provider'],
    ['aud an array with ours nested', { aud: [[AUDIENCE]] }, 'aud is not the audience of this provider'],
    ['aud an array with something else than texts', { aud: [AUDIENCE, 1] }, 'aud is not the audience of this provider'],
    ['aud with another case', { aud: AUDIENCE.toUpperCase() }, 'aud is not the audience of this provider'],
    ['aud with a trailing slash', { aud: `${AUDIENCE}/` }, 'aud is not the audience of this provider'],
    ['aud with a space', { aud: `${AUDIENCE} ` }, 'aud is not the audience of this provider'],
    ['aud as a list in a text', { aud: `other ${AUDIENCE}` }, 'aud is not the audience of this provider'],
    ['aud that only begins like ours', { aud: `${AUDIENCE}-other` }, 'aud is not the audience of this provider'],
    ['no iss', { iss: undefined }, 'iss names no provider'],
    ['iss null', { iss: null }, 'iss names no provider'],
    ['iss an array', { iss: [ISSUER] }, 'iss names no provider'],
    ['a foreign iss', { iss: 'https://evil.example.com' }, 'iss names no provider'],
    ['iss with a trailing slash', { iss: `${ISSUER}/` }, 'iss names no provider'],
    ['iss with another case', { iss: ISSUER.toUpperCase() }, 'iss names no provider'],
    ['iss with the default port', { iss: `${ISSUER}:443` }, 'iss names no provider'],
    ['iss that only begins like ours', { iss: `${ISSUER}.evil.com` }, 'iss names no provider'],
    ['iss called __proto__', { iss: '__proto__' }, 'iss names no provider'],
    ['sub a number', { sub: 7 }, 'sub is not a string'],
    ['sub null', { sub: null }, 'sub is not a string'],
    ['sub an array', { sub: ['alice'] }, 'sub is not a string'],
  ])('%s', async (_name, changes, detail) => {
    const failure = await refusalOf(authenticator, await token(changes))
    expect(failure).toMatchObject({ code: 'invalid_token', status: 401, detail })
    expect(failure.challenge).toEqual({ error: 'invalid_token' })
  })

  it.each<[string, number]>([
    ['exactly the tolerance ago', now - 5],
    ['a minute ago', now - 60],
    ['at the epoch', 0],
    ['before the epoch', -1],
    ['in the very far past', -1e300],
  ])('exp %s, as expired', async (_name, exp) => {
    expect(await refusalOf(authenticator, await token({ exp }))).toMatchObject({ code: 'expired_token', status: 401 })
  })
})

describe('tolerance', () => {
  it.each([0, 30, 60])('%d s is where exp and nbf change', async (toleranceSeconds) => {
    const strict = world.authenticator([provider()], { toleranceSeconds })
    await callerOf(strict, await token({ exp: now - toleranceSeconds + 0.001 }))
    await callerOf(strict, await token({ nbf: now + toleranceSeconds, iat: now + toleranceSeconds }))
    expect((await refusalOf(strict, await token({ exp: now - toleranceSeconds }))).code).toBe('expired_token')
    for (const claim of ['nbf', 'iat']) {
      const early = await refusalOf(strict, await token({ [claim]: now + toleranceSeconds + 0.001 }))
      expect(early).toMatchObject({ code: 'invalid_token', detail: `${claim} is still to come` })
    }
  })

  it('by default is 5 s after exp and 30 s before nbf and iat', async () => {
    await callerOf(authenticator, await token({ exp: now - 4.9, nbf: now + 30, iat: now + 30 }))
    expect((await refusalOf(authenticator, await token({ exp: now - 5 }))).code).toBe('expired_token')
  })
})

describe('the caller', () => {
  it('has the claims deeply frozen and without prototypes, the end of the token, and of the token itself a digest alone', async () => {
    const text = await token({ groups: ['a'], realm_access: { roles: ['x'] }, constructor: 1 })
    const caller = await callerOf(authenticator, text)
    expect(caller).toMatchObject({ subject: 'alice', expiresAtMs: (now + 60) * 1000 })
    expect(caller.claims['constructor']).toBe(1)
    for (const claims of [caller.claims, caller.claims['realm_access']])
      expect('toString' in (claims as object)).toBe(false)
    for (const value of [caller, caller.claims, caller.claims['groups'], caller.claims['realm_access']])
      expect(Object.isFrozen(value)).toBe(true)
    expect(inspect(caller, { depth: Infinity, showHidden: true })).not.toContain(text)
    expect(caller.tokenDigest).toBe(new Secret(text).digest())
  })
})
