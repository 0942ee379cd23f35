import { describe, expect, it } from 'vitest'
import { explain, Failure, FAILURES, OutboundError, type Explanation } from '../../../src/core/index.ts'
import { createScopeCheck } from '../../../src/authenticate/scopes.ts'
import { hmacSigned, rsaKey, signed, signedRaw, type TestKey } from '../../support/authenticate/keys.ts'
import {
  AUDIENCE,
  callerOf,
  createWorld,
  failureOf,
  INTROSPECTION_URL,
  ISSUER,
  json,
  provider,
} from '../../support/authenticate/world.ts'

const key: TestKey = await rsaKey({ kid: 'one', alg: 'RS256', use: 'sig' })
const other: TestKey = await rsaKey({ kid: 'one', alg: 'RS256', use: 'sig' })
const unlisted: TestKey = await rsaKey({ kid: 'two', alg: 'RS256', use: 'sig' })
const second: TestKey = await rsaKey({ kid: 'three', alg: 'RS256', use: 'sig' })
const world = createWorld()
world.serveKeys([key, second])
// An own provider per test, so that no test uses up the fetches of another.
const newAuthenticator = () => world.authenticator([provider()])
const asking = world.authenticator([provider({ introspectionUrl: INTROSPECTION_URL, allowPrivateIP: true })])
world.on(INTROSPECTION_URL, () => json({ active: false }))
const now = world.nowSeconds()

const GOOD = { iss: ISSUER, aud: AUDIENCE, sub: 'alice', exp: now + 60 }
const HEADER = { alg: 'RS256', kid: 'one' }
const token = (claims: object, header: object = {}, by = key) =>
  signed(by, { ...HEADER, ...header }, { ...GOOD, ...claims })

const explained = async (text: string, by = newAuthenticator()): Promise<Explanation> =>
  explain(await failureOf(() => by.authenticate([text], '')))

describe('a mistake in a token is explained by its cause, whose turn it is, and a remedy', () => {
  it.each<[string, () => string | Promise<string>, RegExp, RegExp, RegExp]>([
    ['of another issuer', () => token({ iss: `${ISSUER}/` }), /\(iss\) matches no/, /^the client$/, /exactly/],
    [
      'without an audience',
      () => token({ aud: undefined }),
      /no audience/,
      /operator of the identity provider/,
      /audience/,
    ],
    ['for another audience', () => token({ aud: 'other' }), /wrong audience/, /^the client$/, /Request a token/],
    ['that has ended', () => token({ exp: now - 60 }), /has expired/, /^the client$/, /new token/],
    [
      'without an end',
      () => token({ exp: undefined }),
      /no expiry/,
      /operator of the identity provider/,
      /issue tokens that expire/,
    ],
    [
      'whose end is a text',
      () => token({ exp: 'soon' }),
      /\(exp\) is not a number/,
      /identity provider/,
      /seconds since the epoch/,
    ],
    ['that begins later', () => token({ nbf: now + 60 }), /not valid yet/, /configuration/, /clocks/],
    ['whose beginning is a text', () => token({ nbf: 'x' }), /\(nbf\) is not a number/, /identity provider/, /seconds/],
    ['whose subject is a number', () => token({ sub: 7 }), /\(sub\) is not a string/, /identity provider/, /string/],
    ['with another signature', () => token({}, {}, other), /not made by the key/, /^the client$/, /unmodified/],
    [
      'with an unknown key',
      () => token({}, { kid: 'two' }, unlisted),
      /not among the keys/,
      /^the client$/,
      /Get a new token/,
    ],
    ['without a key', () => token({}, { kid: undefined }), /names no key/, /identity provider/, /set `kid`/],
    ['with HMAC', () => hmacSigned('secret', { alg: 'HS256' }, GOOD), /\(alg\) is not/, /identity provider/, /RS256/],
    ['of another kind', () => token({}, { typ: 'logout+jwt' }), /another kind/, /^the client$/, /access token/],
    [
      'with an extension',
      () => signedRaw(key, JSON.stringify({ ...HEADER, crit: ['x'] }), JSON.stringify(GOOD)),
      /\(crit\)/,
      /identity provider/,
      /omit `crit`/,
    ],
    ['with a key that is a number', () => token({}, { kid: 7 }), /not a string/, /identity provider/, /string/],
    ['that is no JWT', () => 'opaque-token', /is opaque/, /configuration/, /introspectionUrl/],
    ['in quotes', () => '"quoted"', /is not a token/, /^the client$/, /no quotes/],
    ['that is very long', () => 'a'.repeat(17_000), /longer than 16 KiB/, /identity provider/, /group lists/],
  ])('%s', async (_name, make, cause, who, remedy) => {
    const why = await explained(`Bearer ${await make()}`)
    expect(why.cause).toMatch(cause)
    expect(why.who).toMatch(who)
    expect(why.remedy).toMatch(remedy)
    expect(JSON.stringify(why)).not.toContain('alice')
  })

  it('that is missing, that comes twice, or that the provider does not know', async () => {
    expect(await explained('')).toMatchObject({ reason: 'missing_token', who: 'the client' })
    const twice = explain(await failureOf(() => newAuthenticator().authenticate(['Bearer a', 'Bearer b'], '')))
    expect(twice.remedy).toMatch(/gateway may/)
    expect((await explained('Bearer opaque', asking)).cause).toMatch(/not active/)
  })

  it('with what came and what was wanted, and nothing that names a person', async () => {
    const { compared } = await explained(`Bearer ${await token({ aud: ['a', 'b'], exp: now + 60, email: 'a@b' })}`)
    expect(compared).toEqual({
      came: {
        iss: ISSUER,
        aud: '["a","b"]',
        exp: new Date((now + 60) * 1000).toISOString(),
        alg: 'RS256',
        kid: 'one',
      },
      wanted: { iss: ISSUER, aud: AUDIENCE, alg: expect.stringContaining('ES256') },
    })
    const long = await explained(`Bearer ${await token({ aud: `${'x'.repeat(1000)}\u001b[2J` })}`)
    expect(long.compared?.came['aud']).toHaveLength(201)
  })

  it('without a scope, with those that it has', async () => {
    const caller = await callerOf(newAuthenticator(), await token({ scope: 'read', jti: '1' }))
    const failure = await failureOf(() => createScopeCheck(['read', 'write'])(caller))
    expect(explain(failure)).toMatchObject({
      reason: 'insufficient_scope',
      who: "the administrator of this caller's permissions",
      compared: { came: { scope: 'read' }, wanted: { scope: 'read write' } },
    })
  })
})

describe('a service that does not answer is explained by its cause, whose turn it is, and a remedy', () => {
  it.each<[string, RegExp, RegExp]>([
    ['ECONNREFUSED', /no server listens/, /correct the host and port/],
    ['ENOTFOUND', /does not exist/, /Correct the host name/],
    ['EAI_AGAIN', /DNS lookup/, /DNS/],
    ['EHOSTUNREACH', /no route to the host/, /firewalls/],
    ['ECONNRESET', /reset the connection/, /the port/],
    ['UND_ERR_CONNECT_TIMEOUT', /the connection attempt timed out/, /firewalls/],
    ['UND_ERR_HEADERS_TIMEOUT', /no response in time/, /load and the log/],
    ['WIRE_FIRST_BYTE', /no response in time/, /load and the log/],
    ['WIRE_HEAD_TOO_LARGE', /too large/, /Reduce the headers/],
    ['SELF_SIGNED_CERT_IN_CHAIN', /untrusted CA/, /caCertPath/],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', /self-signed/, /caCertPath/],
    ['CERT_HAS_EXPIRED', /has expired/, /Renew/],
    ['ERR_TLS_CERT_ALTNAME_INVALID', /different host name/, /serverName/],
    ['ERR_SSL_WRONG_VERSION_NUMBER', /does not use TLS|TLS handshake failed/, /http:\/\//],
  ])('%s', (code, cause, remedy) => {
    const beneath = Object.assign(new Error('x'), { code })
    for (const failure of [
      new Failure('backend_unreachable', { cause: beneath }),
      new Failure('identity_provider_unavailable', {
        detail: 'provider corporate: unreachable',
        cause: new OutboundError('unreachable', { cause: beneath }),
      }),
    ]) {
      const why = explain(failure)
      expect(why.cause).toMatch(cause)
      expect(why.cause).toContain(`(${code})`)
      expect(why.remedy).toMatch(remedy)
    }
  })

  it.each([
    ['timeout', /no response in time/],
    ['blocked_address', /not allowed/],
    ['breaker_open', /paused/],
    ['overloaded', /limit of concurrent calls/],
    ['too_large', /exceeds the size limit/],
  ] as const)('%s', (kind, cause) => {
    const failure = new Failure('identity_provider_unavailable', { detail: 'keys', cause: new OutboundError(kind) })
    expect(explain(failure).cause).toMatch(cause)
  })

  it('and what is not known more exactly by the error table', () => {
    const why = explain(new Failure('no_role'))
    expect(why.remedy).toBe(FAILURES.no_role.remedy)
    expect(why.cause).toBe('No role is mapped to this caller')
  })
})
