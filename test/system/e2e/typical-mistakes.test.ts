import { afterAll, beforeAll, expect, it } from 'vitest'
import { hmacSigned, rsaKey, signedRaw } from '../../support/authenticate/keys.ts'
import { FAILURES, type FailureCode } from '../../../src/core/index.ts'
import { createSockets } from '../../support/sockets.ts'
import { extauth } from '../../support/e2e/process.ts'
import { startMistaken } from '../../support/e2e/mistaken-proxy.ts'

const sockets = createSockets()
let world: Awaited<ReturnType<typeof startMistaken>>
beforeAll(async () => {
  world = await startMistaken(sockets)
})
afterAll(() => sockets.closeAll())

const other = await rsaKey({ kid: 'one', alg: 'RS256', use: 'sig' })
const seconds = (): number => Math.floor(Date.now() / 1000)
type Token = () => string | Promise<string>

const OF_TOKENS: readonly (readonly [string, Token, RegExp, RegExp])[] = [
  ['an issuer with a slash at its end', () => world.token({ iss: `${world.issuer}/` }), /\(iss\)/, /exactly/],
  ['no audience', () => world.token({ aud: undefined }), /no audience/, /put the provider/],
  ['a foreign audience', () => world.token({ aud: 'api' }), /wrong audience \(aud\)/, /Request a token/],
  ['a token that has ended', () => world.token({ exp: seconds() - 300 }), /has expired/, /Get a new token/],
  ['a token without an end', () => world.token({ exp: undefined }), /no expiry/, /issue tokens that expire/],
  ['a token of tomorrow', () => world.token({ nbf: seconds() + 86_400 }), /not valid yet/, /clocks/],
  ['times as texts', () => world.token({ exp: '2026-01-01' }), /\(exp\) is not a number/, /seconds since the epoch/],
  // Keys are fetched once in 5 s for both, and only the first has to wait for it.
  ['a key that was replaced', () => world.token({}, { kid: 'old' }), /not among the keys/, /Get a new token/],
  ['another key of that name', () => world.token({}, {}, other), /not made by the key/, /Two issuers with one name/],
  ['a shared secret', () => hmacSigned('s', { alg: 'HS256' }, { iss: world.issuer }), /\(alg\)/, /RS256/],
  ['a logout token', () => world.token({}, { typ: 'logout+jwt' }), /another kind/, /access token/],
  ['a subject that is a number', () => world.token({ sub: 7 }), /\(sub\) is not a string/, /must send a string/],
  ['an opaque token', () => 'k3Jd9xQ0aB7', /is opaque/, /introspectionUrl/],
  ['a token in quotes', () => '"k3Jd9xQ0aB7"', /is not a token/, /no quotes/],
  [
    'half a token',
    async () => (await world.token()).slice(0, 60),
    /cannot be parsed|opaque/,
    /complete|introspectionUrl/,
  ],
  [
    'an unknown extension',
    () => signedRaw(world.key, '{"alg":"RS256","kid":"one","crit":["x"]}', `{"iss":"${world.issuer}"}`),
    /\(crit\)/,
    /omit `crit`/,
  ],
]

/** By route, with a good token. */
const OF_CONFIGURATIONS: readonly (readonly [string, string, RegExp, RegExp])[] = [
  ['a backend that does not run', 'no-backend', /no server listens .*ECONNREFUSED/, /correct the host and port/],
  ['a host that does not exist', 'no-such-host', /host name .*(ENOTFOUND|EAI_AGAIN)/, /DNS/],
  ['https where there is no TLS', 'no-tls', /does not use TLS|TLS handshake failed/, /http:\/\/|scheme/],
  ['an authority of its own', 'unknown-ca', /untrusted CA/, /caCertPath/],
  ['a certificate for another name', 'other-name', /different host name/, /serverName/],
  ['a backend that cuts connections', 'cutting', /reset the connection|closed the connection/, /log/],
  ['a slow tool', 'silent', /no response in time.*100 ms/, /timeouts\.firstByte/],
  ['a redirect to another place', 'elsewhere', /redirect to another origin/, /Set `target` to the redirect/],
  ['a static token that is wrong', 'rejects', /the backend answered 401/, /MCPExternalAuthConfig/],
  ['a secret that is not there', 'no-secret', /secret/i, /Create the named secret/],
  ['a scope that is lacking', 'scoped', /scope/, /requiredScopes/],
  ['an identity provider that is down', 'idp-gone', /ECONNREFUSED/, /correct the host and port/],
  ['a realm that is not there', 'idp-realm', /answered 404 at http/, /jwks_uri/],
  ['keys at the address of a page', 'idp-page', /the response is not a JSON object/, /jwks_uri/],
  ['a private address of a provider', 'idp-private', /not allowed/, /allowPrivateIP/],
  ['a provider with an authority of its own', 'idp-unknown-ca', /untrusted CA/, /caCertPath/],
  ['a token URL that is none', 'token-404', /answered 404/, /token URL/],
  ['a client secret that is wrong', 'token-client', /invalid_client/, /Compare `clientId`, its secret/],
  ['an audience that the exchange does not know', 'token-target', /invalid_target/, /Compare `audience`/],
  ['an exchange that is not switched on', 'token-grant', /unsupported_grant_type/, /Enable this grant/],
  ['an exchange that is denied', 'token-denied', /access_denied/, /policy for this audience/],
  ['a login page as token URL', 'token-page', /the response is not a JSON object/, /exchange tokens \(RFC 8693/],
  ['a token endpoint that is down', 'token-gone', /ECONNREFUSED/, /correct the host and port/],
  ['no role', 'no-role', /role/, /extauth explain/],
  ['a path that is no route', 'nowhere', /no route/, /Compare the path/],
]

it('there are more than 32 of them', () => {
  expect(OF_TOKENS.length + OF_CONFIGURATIONS.length).toBeGreaterThan(32)
})

it.each(OF_TOKENS)('%s: the page says why, and what to do', async (_what, make, cause, remedy) => {
  const { status, why, line } = await world.ask('good', [['authorization', `Bearer ${await make()}`]])
  expect([status, why]).toMatchObject([401, { cause: expect.stringMatching(cause) as string }])
  expect(line.reason).toBe(why.reason)
  expect(why.remedy).toMatch(remedy)
  expect(why.who).not.toBe('')
})

it.each(OF_CONFIGURATIONS)('%s: the page says why, and what to do', async (_what, route, cause, remedy) => {
  const headers = [['authorization', `Bearer ${await world.token({ scope: 'read' })}`]] as const
  const { status, why, line } = await world.ask(route, headers)
  expect(status).toBeGreaterThanOrEqual(400)
  expect(line.reason).toBe(why.reason)
  expect(why.cause).toMatch(cause)
  expect(why.remedy).toMatch(remedy)
  expect(FAILURES[why.reason as FailureCode]).toBeDefined()
})

it('no token at all: the page says why, and what to do', async () => {
  const { status, why } = await world.ask('good', [])
  expect([status, why]).toMatchObject([401, { reason: 'missing_token', who: 'the client' }])
  expect(why.remedy).toMatch(/Authorization: Bearer/)
})

it('an issuer that has no metadata: the page says why, and what to do', async () => {
  const token = await world.token({ iss: `${world.issuer}/realms/nope` })
  const { why } = await world.ask('idp-nowhere', [['authorization', `Bearer ${token}`]])
  expect(why.cause).toMatch(/discovery document answered 404 at http/)
  expect(why.remedy).toMatch(/Set `issuerUrl` to the `iss`/)
})

it('wrong addresses are named in the log lines, the backend’s host and port too', async () => {
  const headers = [['authorization', `Bearer ${await world.token()}`]] as const
  const of = (route: string) => world.ask(route, headers)
  const refused = `connection refused: no server listens at this host and port: http://${world.closed} (ECONNREFUSED)`
  expect(await of('token-404')).toMatchObject({
    status: 500,
    line: { reason: 'config_error', why: expect.stringContaining(`${world.issuer}/realms/nope/token answered 404`) },
  })
  expect(await of('idp-realm')).toMatchObject({
    status: 502,
    line: {
      reason: 'identity_provider_error',
      why: expect.stringContaining(`answered 404 at ${world.issuer}/realms/nope`),
    },
  })
  expect((await of('no-backend')).line.why).toContain(refused)
  expect((await of('token-gone')).line.why).toContain(refused)
})

it('wrong addresses are named by check', async () => {
  const running = extauth(['check', '--config', world.directory, '--secrets-dir', `${world.directory}/secrets`])
  expect(await running.ended).toBe(1)
  const output = running.stdout().replaceAll(/\s+/g, ' ')
  expect(output).toContain(`${world.issuer}/realms/nope/token answered 404`)
  expect(output).toContain(`answered 404 at ${world.issuer}/realms/nope/.well-known/openid-configuration`)
  expect(output).not.toContain('not-for-a-log')
}, 60_000)
