import { describe, expect, it } from 'vitest'
import { ecKey, jwks, published, rsaKey, signed, type TestKey } from '../../support/authenticate/keys.ts'
import {
  AUDIENCE,
  callerOf,
  createWorld,
  ISSUER,
  json,
  JWKS_URL,
  provider,
  refusalOf,
} from '../../support/authenticate/world.ts'

const one = await rsaKey()
const two = await rsaKey()
const ec = await ecKey('P-256')
const small = await rsaKey({}, 1024)

const world = createWorld()
const payload = { iss: ISSUER, aud: AUDIENCE, sub: 'alice', exp: world.nowSeconds() + 60 }
const rs256 = (key: TestKey, header: object = {}) => signed(key, { alg: 'RS256', ...header }, payload)

const serving = (document: unknown) => {
  const world = createWorld()
  world.on(JWKS_URL, () => json(document))
  return world.authenticator([provider()])
}
const publishing = (...keys: readonly TestKey[]) => serving(jwks(keys))
const as = (key: TestKey, members: object) => published(key, members)

describe('the key that a token names', () => {
  it.each<[string, readonly TestKey[], object]>([
    ['by kid among several', [as(two, { kid: 'b' }), as(one, { kid: 'a' })], { kid: 'a' }],
    ['by an empty kid', [as(one, { kid: '' }), as(two, { kid: 'b' })], { kid: '' }],
    ['by a kid beyond ASCII', [as(one, { kid: 'schlüssel/🔑' })], { kid: 'schlüssel/🔑' }],
    ['without kid when there is one key', [one], {}],
    ['without kid when one key has the right type', [as(one, { kid: 'a' }), as(ec, { kid: 'b' })], {}],
    ['without kid when one key has the right alg', [as(one, { alg: 'RS256' }), as(two, { alg: 'RS512' })], {}],
    ['without kid when one key is for signatures', [as(one, { use: 'sig' }), as(two, { use: 'enc' })], {}],
    ['with one kid for keys of two types', [as(ec, { kid: 'a' }), as(one, { kid: 'a' })], { kid: 'a' }],
    [
      'with one kid for two algorithms',
      [as(one, { kid: 'a', alg: 'RS256' }), as(two, { kid: 'a', alg: 'PS256' })],
      { kid: 'a' },
    ],
    ['listed twice', [as(one, { kid: 'a' }), as(one, { kid: 'a' })], { kid: 'a' }],
    ['listed twice, once with alg', [as(one, { kid: 'a' }), as(one, { kid: 'a', alg: 'RS256' })], { kid: 'a' }],
    ['without kid when one key has two names', [as(one, { kid: 'a' }), as(one, { kid: 'b' })], {}],
    ['with key_ops that verify', [as(one, { key_ops: ['verify'] })], {}],
    ['with unknown fields', [as(one, { x5t: 'abc', color: { is: 'blue' } })], {}],
    [
      'under a header with jku, x5u, jwk and x5c, which are not looked at',
      [one],
      { jku: 'https://evil.example', x5c: ['x'], jwk: two.jwk },
    ],
    ['under typ at+jwt', [one], { typ: 'at+jwt' }],
    ['under typ application/at+jwt', [one], { typ: 'application/AT+JWT' }],
    ['under typ JWT, and any cty', [one], { typ: 'JWT', cty: 'JWT' }],
    ['under a header with b64 that is not critical', [one], { b64: true }],
  ])('is found %s', async (_name, keys, header) => {
    expect((await callerOf(publishing(...keys), await rs256(one, header))).subject).toBe('alice')
  })

  it.each<[string, readonly TestKey[], object, string]>([
    ...['logout+jwt', 'dpop+jwt', 'application/secevent+jwt', 'LOGOUT+JWT', 'JOSE', 'jose+json', 7].map(
      (typ): [string, readonly TestKey[], object, string] => [
        `typ ${typ}`,
        [one],
        { typ },
        'typ is not that of an access token',
      ],
    ),
    ['an unknown kid', [as(one, { kid: 'a' })], { kid: 'b' }, 'no key of the provider fits'],
    ['a kid in another case', [as(one, { kid: 'a' })], { kid: 'A' }, 'no key of the provider fits'],
    ['a kid when the key has none', [one], { kid: 'a' }, 'no key of the provider fits'],
    ['kid null', [one], { kid: null }, 'kid is not a string'],
    ['kid a number', [as(one, { kid: '1' })], { kid: 1 }, 'kid is not a string'],
    ['no kid and several keys that fit', [one, two], {}, 'several keys of the provider match and the token has no kid'],
    [
      'a kid that two different keys have',
      [as(one, { kid: 'a' }), as(two, { kid: 'a' })],
      { kid: 'a' },
      'several keys of the provider match and the token has no kid',
    ],
    ['the kid of another key', [as(one, { kid: 'a' }), as(two, { kid: 'b' })], { kid: 'b' }, 'the signature is wrong'],
    ['a key for another algorithm', [as(one, { alg: 'RS512' })], {}, 'no key of the provider fits'],
    ['a key for encryption', [as(one, { use: 'enc' })], {}, 'no key of the provider fits'],
    ['a key of unknown use', [as(one, { use: 7 })], {}, 'no key of the provider fits'],
    ['key_ops that do not verify', [as(one, { key_ops: ['encrypt', 'wrapKey'] })], {}, 'no key of the provider fits'],
    ['key_ops that are no list', [as(one, { key_ops: 'verify' })], {}, 'no key of the provider fits'],
    ['an RSA key of 1024 bits', [small], {}, 'no key of the provider fits'],
    ['an RSA key with the exponent 1', [as(one, { e: 'AQ' })], {}, 'no key of the provider fits'],
    ['a private key in public', [as(one, { d: 'AQAB' })], {}, 'no key of the provider fits'],
    ['a key without its modulus', [as(one, { n: undefined })], {}, 'no key of the provider fits'],
    ['a key with a modulus that is no text', [as(one, { n: 7 })], {}, 'no key of the provider fits'],
    ['a key of unknown type', [as(one, { kty: 'AKP' })], {}, 'no key of the provider fits'],
    ['a key of the type __proto__', [as(one, { kty: '__proto__' })], {}, 'no key of the provider fits'],
    ['no keys at all', [], {}, 'no key of the provider fits'],
    ['crit', [one], { crit: ['exp'], exp: 1 }, 'crit names an unsupported extension'],
    ['crit with b64', [one], { crit: ['b64'], b64: true }, 'crit names an unsupported extension'],
  ])('is refused: %s', async (_name, keys, header, detail) => {
    const { sign } = await import('node:crypto')
    // Made by hand: jose will not write some of these headers.
    const input = [{ alg: 'RS256', ...header }, payload]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.')
    const signer = detail.includes('1024') ? small : one
    const token = `${input}.${sign('sha256', Buffer.from(input), signer.privateKey).toString('base64url')}`
    expect(await refusalOf(publishing(...keys), token)).toMatchObject({ code: 'invalid_token', detail })
  })

  it.each<[string, object]>([
    ['null', { crit: null }],
    ['an empty list', { crit: [] }],
    ['a text', { crit: 'exp' }],
  ])('is refused: crit as %s', async (_name, header) => {
    const { signedRaw } = await import('../../support/authenticate/keys.ts')
    const token = signedRaw(one, JSON.stringify({ alg: 'RS256', ...header }), JSON.stringify(payload))
    expect((await refusalOf(publishing(one), token)).code).toBe('invalid_token')
  })

  it('is found among keys that make no sense', async () => {
    const nonsense = [
      null,
      7,
      'key',
      [],
      {},
      { kty: 'EC', crv: 'P-256', x: 'AA', y: 'AA' },
      { kty: 'OKP', crv: 'X25519', x: 'AA' },
    ]
    expect((await callerOf(serving({ keys: [...nonsense, one.jwk] }), await rs256(one))).subject).toBe('alice')
  })

  it('is not looked for beyond the hundredth', async () => {
    const many = Array.from({ length: 100 }, () => ({ kty: 'oct', k: 'AA' }))
    expect((await refusalOf(serving({ keys: [...many, one.jwk] }), await rs256(one))).code).toBe('invalid_token')
  })

  it.each<[string, unknown]>([
    ['no keys member', {}],
    ['keys that are no list', { keys: {} }],
    ['keys null', { keys: null }],
    ['a list', [one.jwk]],
    ['a text', 'keys'],
  ])('cannot be looked for in %s: that is the provider, not the token', async (_name, document) => {
    expect(await refusalOf(serving(document), await rs256(one))).toMatchObject({
      code: 'identity_provider_error',
      status: 502,
    })
  })
})
