import { CompactEncrypt, importJWK } from 'jose'
import { describe, expect, it } from 'vitest'
import { base64url, rsaKey, signed, signedRaw } from '../../support/authenticate/keys.ts'
import {
  AUDIENCE,
  bearer,
  callerOf,
  createWorld,
  failureOf,
  INTROSPECTION_URL,
  ISSUER,
  json,
  provider,
  refusalOf,
  tokenIn,
} from '../../support/authenticate/world.ts'

const key = await rsaKey()
const world = createWorld()
world.serveKeys([key])
const introspected: string[] = []
world.on(INTROSPECTION_URL, (request) => {
  introspected.push(tokenIn(request))
  return json({ active: false })
})
const jwtOnly = world.authenticator([provider()])
const both = world.authenticator([provider({ introspectionUrl: INTROSPECTION_URL })])

const payload = { iss: ISSUER, aud: AUDIENCE, sub: 'alice', exp: world.nowSeconds() + 60 }
const text = JSON.stringify(payload)
const good = await signed(key, { alg: 'RS256' }, payload)
const large = await signed(key, { alg: 'RS256' }, { ...payload, padding: 'x'.repeat(11_000) })
const [header = '', body = '', signature = ''] = good.split('.')
const jwe = await new CompactEncrypt(new TextEncoder().encode(text))
  .setProtectedHeader({ alg: 'RSA-OAEP-256', enc: 'A256GCM' })
  .encrypt(await importJWK(key.jwk, 'RSA-OAEP-256'))

describe('an opaque token', () => {
  it.each<[string, string]>([
    ['one character', 'x'],
    ['a UUID', '2b1c1a9e-7f3d-4a52-9a6e-0d3a5d2f6c11'],
    ['base64 with padding', 'c2VjcmV0IHRva2Vu+/=='],
    ['all that token68 allows', 'azAZ09-._~+/'],
    ['two segments', `${header}.${body}`],
    ['four segments', `${good}.x`],
    ['a JWE', jwe],
    [
      'a nested JWT inside a JWE',
      jwe.replace(/^[^.]+/, base64url({ alg: 'RSA-OAEP-256', enc: 'A256GCM', cty: 'JWT' })),
    ],
    ['a JWT inside a JWS', `${header}.${base64url(good)}.${signature}`],
    ['a detached payload', `${header}..${signature}`],
    ['an empty header', `.${body}.${signature}`],
    ['three empty segments', '..'],
    ['three words with dots', 'one.two.three'],
    ['a header that is an array', `${base64url('[]')}.${body}.${signature}`],
    ['a header that is null', `${base64url('null')}.${body}.${signature}`],
    ['a header that is not JSON', `${base64url('{alg:RS256}')}.${body}.${signature}`],
    [
      'a header that is not UTF-8',
      `${Buffer.from('7b22ff223a317d', 'hex').toString('base64url')}.${body}.${signature}`,
    ],
    ['a header with a byte order mark', `${base64url('\uFEFF{"alg":"RS256"}')}.${body}.${signature}`],
    ['a payload that is a text', `${header}.${base64url('"alice"')}.${signature}`],
    ['a payload that is a number', `${header}.${base64url('7')}.${signature}`],
    ['a payload with something after it', `${header}.${base64url(`${text} {}`)}.${signature}`],
    ['a header cut short', good.slice(3)],
    ['a payload cut short', `${header}.${body.slice(0, -3)}.${signature}`],
    [
      'a header with nonzero padding bits',
      `${base64url('{"alg":"RS256" }').replace(/fQ$/, 'fR')}.${body}.${signature}`,
    ],
    ['a signature with padding', `${good}=`],
    ['base64 instead of base64url', `${header}.${body}.a+/b`],
  ])('%s is introspected where that is possible, else refused', async (_name, token) => {
    introspected.length = 0
    expect(await refusalOf(both, token)).toMatchObject({ code: 'invalid_token', status: 401 })
    expect(introspected).toEqual([token])
    expect(await refusalOf(jwtOnly, token)).toMatchObject({
      code: 'invalid_token',
      detail: 'no provider accepts tokens of this kind',
    })
  })
})

describe('a JWT', () => {
  it.each<[string, string]>([
    ['as it is usually written', good],
    ['with spaces in its JSON', signedRaw(key, '{ "alg" :\t"RS256" }', ` ${text}\n`)],
    ['with escapes in its names', signedRaw(key, '{"\\u0061lg":"RS256"}', text)],
    [
      'nested 30 levels deep',
      signedRaw(key, '{"alg":"RS256"}', text.replace('{', `{"deep":${'['.repeat(30)}${']'.repeat(30)},`)),
    ],
    ['of almost 16 KiB', large],
  ])('%s is accepted', async (_name, token) => {
    expect((await callerOf(jwtOnly, token)).subject).toBe('alice')
  })

  it.each<[string, string]>([
    ['two exp', signedRaw(key, '{"alg":"RS256"}', text.replace('{', '{"exp":1,'))],
    ['two iss', signedRaw(key, '{"alg":"RS256"}', text.replace('{', '{"iss":"https://evil.example.com",'))],
    ['two alg', signedRaw(key, '{"alg":"none","alg":"RS256"}', text)],
    ['two names, one of them escaped', signedRaw(key, '{"alg":"RS256"}', text.replace('{', '{"\\u0069ss":"x",'))],
    ['two names in a nested object', signedRaw(key, '{"alg":"RS256"}', text.replace('{', '{"a":{"b":1,"b":2},'))],
    ['two __proto__', signedRaw(key, '{"alg":"RS256"}', text.replace('{', '{"__proto__":1,"__proto__":2,'))],
    ['a number without an end', signedRaw(key, '{"alg":"RS256"}', text.replace('{', '{"n":1e999,'))],
    [
      'nesting 40 levels deep',
      signedRaw(key, '{"alg":"RS256"}', text.replace('{', `{"deep":${'['.repeat(40)}${']'.repeat(40)},`)),
    ],
    [
      'a signature with nonzero padding bits',
      `${good.slice(0, -1)}${String.fromCharCode(good.charCodeAt(good.length - 1) + 1)}`,
    ],
    ['a signature of impossible length', `${header}.${body}.${signature.slice(0, -1)}`],
  ])('with %s is rejected without asking another provider', async (_name, token) => {
    introspected.length = 0
    expect(await refusalOf(both, token)).toMatchObject({ code: 'invalid_token', status: 401 })
    expect(introspected).toEqual([])
  })

  it('without a signature is refused', async () => {
    expect(await refusalOf(jwtOnly, `${header}.${body}.`)).toMatchObject({ detail: 'the signature is wrong' })
  })
})

describe('the Authorization header', () => {
  const asked =
    (values: readonly string[], query = '') =>
    () =>
      jwtOnly.authenticate(values, query)

  it.each<[string, readonly string[]]>([
    ['Bearer', [`Bearer ${good}`]],
    ['bearer', [`bearer ${good}`]],
    ['BEARER', [`BEARER ${good}`]],
    ['bEaReR and two spaces', [`bEaReR  ${good}`]],
  ])('may say %s', async (_name, values) => {
    expect(await asked(values)()).toMatchObject({ kind: 'authenticated', subject: 'alice' })
  })

  it.each<[string, readonly string[]]>([
    ['missing', []],
    ['empty', ['']],
    ['of another scheme', ['Basic YWxpY2U6c2VjcmV0']],
    ['of DPoP', [`DPoP ${good}`]],
    ['a token alone', [good]],
  ])('that is %s is no error of the client: nothing in the challenge says so', async (_name, values) => {
    const failure = await failureOf(asked(values))
    expect(failure).toMatchObject({ code: 'missing_token', status: 401 })
    expect(failure.challenge?.error).toBeUndefined()
  })

  it.each<[string, readonly string[], string]>([
    ['twice', [`Bearer ${good}`, `Bearer ${good}`], 'bad_request'],
    ['twice with different tokens', [`Bearer ${good}`, 'Bearer x'], 'bad_request'],
    ['without a token', ['Bearer'], 'invalid_token'],
    ['with an empty token', ['Bearer '], 'invalid_token'],
    ['with a tab', [`Bearer\t${good}`], 'invalid_token'],
    ['with two tokens', [`Bearer ${good} ${good}`], 'invalid_token'],
    ['with two tokens and a comma', [`Bearer ${good},${good}`], 'invalid_token'],
    ['with a quoted token', [`Bearer "${good}"`], 'invalid_token'],
    ['with characters beyond ASCII', [`Bearer ${good}é`], 'invalid_token'],
    ['with a character of another alphabet', [`Bearer ${good.replace('e', 'е')}`], 'invalid_token'],
    ['with a control character', [`Bearer ${good}\u0001`], 'invalid_token'],
    ['with a trailing space', [`Bearer ${good} `], 'invalid_token'],
    ['of 16 KiB and one byte', [`Bearer ${'x'.repeat(16_385)}`], 'invalid_token'],
    ['of a megabyte', [`Bearer ${'x'.repeat(1_000_000)}`], 'invalid_token'],
  ])('is refused %s', async (_name, values, code) => {
    const failure = await failureOf(asked(values))
    expect(failure.code).toBe(code)
    expect(failure.challenge?.error).toBe(code === 'bad_request' ? 'invalid_request' : 'invalid_token')
  })

  it.each(['access_token=x', 'a=b&access_token=', 'access%5Ftoken=x', '%61ccess_token=x', `access_token=${good}`])(
    'is the only place: a query with %s is a bad request',
    async (query) => {
      for (const values of [[], bearer(good)]) {
        const failure = await failureOf(asked(values, query))
        expect(failure).toMatchObject({ code: 'bad_request', status: 400, challenge: { error: 'invalid_request' } })
      }
    },
  )

  it.each(['a=access_token', 'my_access_token=x', 'token=x', 'q=%20'])('leaves the query %s alone', async (query) => {
    expect(await asked(bearer(good), query)()).toMatchObject({ subject: 'alice' })
  })
})
