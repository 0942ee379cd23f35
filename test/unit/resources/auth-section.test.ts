import { describe, expect, test } from 'vitest'
import { jsonSchemaAccepts, problemsOf } from '../../support/load/publish/validators.ts'
import { CLIENTS, WRONG_CLIENTS } from '../../support/resources/examples-clients.ts'

const provider = { name: 'corp', issuerUrl: 'https://idp.example.com', audience: 'mcp' }
const oauth = (more: object = {}) => ({ resourceUrl: 'https://mcp.example.com', providers: [provider], ...more })
const withProvider = (more: object) => ({ oauth: oauth({ providers: [{ ...provider, ...more }] }) })

interface Row {
  readonly name: string
  readonly auth: unknown
  readonly problem?: string
}

// prettier-ignore
const ROWS: readonly Row[] = [
  { name: 'anonymous', auth: { mode: 'anonymous' } },
  { name: 'oauth by default', auth: { oauth: oauth() } },
  { name: 'nothing', auth: {}, problem: 'auth.oauth  missing, mode "oauth" (the default) needs "oauth.resourceUrl" and "oauth.providers"' },
  { name: 'an unknown mode', auth: { mode: 'oidc' }, problem: 'auth.mode  "oidc" is not known' },
  { name: 'no resource', auth: { oauth: { providers: [provider] } }, problem: 'auth.oauth.resourceUrl  missing' },
  { name: 'no providers', auth: { oauth: { resourceUrl: 'https://a' } }, problem: 'auth.oauth.providers  missing, expected a list' },
  { name: 'an empty list of providers', auth: { oauth: oauth({ providers: [] }) }, problem: 'at least 1 entry' },
  { name: 'a cluster provider', auth: withProvider({ issuerUrl: 'https://kubernetes.default.svc', jwksUrl: 'https://kubernetes.default.svc/openid/v1/jwks', caCertPath: '/ca.crt', authTokenFile: '/token', allowPrivateIP: true }) },
  { name: 'an opaque-token provider', auth: withProvider({ introspectionUrl: 'https://idp.example.com/introspect', clientId: 'a', clientSecretFile: './secret', introspection: { requireAudience: false } }) },
  { name: 'an issuer with a trailing slash', auth: withProvider({ issuerUrl: 'https://idp.example.com/' }) },
  { name: 'a secret file without client', auth: withProvider({ clientSecretFile: './secret' }), problem: '"clientSecretFile" needs "clientId"' },
  { name: 'a secret inline', auth: withProvider({ clientSecret: 'abc' }), problem: 'unknown field "clientSecret", did you mean "clientSecretFile"?' },
  { name: 'a provider without audience', auth: { oauth: oauth({ providers: [{ name: 'a', issuerUrl: 'https://b' }] }) }, problem: 'providers[0].audience  missing' },
  { name: 'a user in the issuer URL', auth: withProvider({ issuerUrl: 'https://a:b@idp.example.com' }), problem: 'without user information' },
  { name: 'a realm that would end its quotes', auth: { oauth: oauth({ realm: 'a"b' }) }, problem: 'auth.oauth.realm' },
  { name: 'a realm of two lines', auth: { oauth: oauth({ realm: 'a\r\nX: y' }) }, problem: 'auth.oauth.realm' },
  { name: 'tolerance 0', auth: { oauth: oauth({ toleranceSeconds: 0 }) } },
  { name: 'tolerance 60', auth: { oauth: oauth({ toleranceSeconds: 60 }) } },
  { name: 'tolerance 61', auth: { oauth: oauth({ toleranceSeconds: 61 }) }, problem: 'too large, expected at most 60' },
  { name: 'a scope in quotes', auth: { oauth: oauth({ scopesSupported: ['a"b'] }) }, problem: 'scopesSupported[0]' },
  ...['/docs', '/docs/v1', '/docs/', '/a.b/c-d'].map((path) => ({ name: `public path ${path}`, auth: { oauth: oauth({ publicPaths: [path] }) } })),
  ...['/', '', 'docs', '//', '/a//b', '/a/../b', '/a/.', '/..', '/a?b', '/a#b', '/a%2Fb', '/a\\b', '/a b'].map((path) => ({ name: `no public path: ${path}`, auth: { oauth: oauth({ publicPaths: [path] }) }, problem: 'auth.oauth.publicPaths[0]' })),
  { name: 'public paths beside oauth', auth: { oauth: oauth(), publicPaths: ['/'] }, problem: 'auth.publicPaths[0]' },
]

describe('the auth section', () => {
  test.each(ROWS.map((row) => [row.problem === undefined ? 'accepts' : 'refuses', row.name, row] as const))(
    '%s %s',
    (_verdict, _name, { auth, problem }) => {
      const file = { auth, registries: [{ name: 'default', source: { file: './servers.json' } }] }
      const problems = problemsOf(file)
      if (problem === undefined) expect(problems).toEqual([])
      else expect(problems.join('\n')).toContain(problem)
      expect(jsonSchemaAccepts('AuthSection', auth)).toBe(problem === undefined)
      expect(jsonSchemaAccepts('RegistryConfig', file)).toBe(problem === undefined)
    },
  )

  test('an unknown mode is one problem, and not a missing section of the default as well', () => {
    const file = { auth: { mode: 'Anonymous' }, registries: [{ name: 'default', source: { file: 'a' } }] }
    expect(problemsOf(file)).toEqual([expect.stringContaining('"Anonymous" is not known, did you mean "anonymous"?')])
  })

  test('a missing section is mode oauth without providers', () => {
    const file = { registries: [{ name: 'default', source: { file: 'a' } }] }
    expect(problemsOf(file).join()).toContain('needs "oauth.resourceUrl" and "oauth.providers"')
  })

  test.each([
    [{}, 'exactly one of'],
    [{ file: 'a', directory: 'b' }, 'exactly one of'],
    [{ url: 'a' }, 'an http or https URL'],
    [{ fil: 'a' }, 'did you mean "file"'],
  ])('refuses the registry source %j', (source, problem) => {
    const file = { auth: { mode: 'anonymous' }, registries: [{ name: 'default', source }] }
    expect(problemsOf(file).join()).toContain(problem)
    expect(jsonSchemaAccepts('RegistryConfig', file)).toBe(false)
  })

  test('names of registries are unique', () => {
    const registry = { name: 'default', source: { file: 'a' } }
    expect(problemsOf({ auth: { mode: 'anonymous' }, registries: [registry, registry] }).join()).toContain('unique')
  })
})

describe('how we authenticate for introspection', () => {
  const introspectionUrl = 'https://idp.example.com/introspect'
  const proxy = (more: object) => ({
    apiVersion: 'extauth.dev/v1alpha1',
    kind: 'ProxyConfig',
    metadata: { name: 'a' },
    spec: { auth: withProvider({ introspectionUrl, ...more }), routes: [] },
  })
  const at = 'spec.auth.oauth.providers[0].clientAuth'

  test.each(CLIENTS)('takes %s in a ProxyConfig and in a registry file', (_name, clientAuth) => {
    expect(problemsOf(proxy({ clientAuth })).filter((problem) => problem.includes('auth.'))).toEqual([])
    const registries = [{ name: 'default', source: { file: 'a' } }]
    const file = { auth: withProvider({ introspectionUrl, clientAuth }), registries }
    expect(problemsOf(file)).toEqual([])
    expect(jsonSchemaAccepts('RegistryConfig', file)).toBe(true)
  })

  test.each<[string, object, string]>([
    ...WRONG_CLIENTS.map(([name, clientAuth, problem]): [string, object, string] => [name, { clientAuth }, problem]),
    ['twice', { clientId: 'us', clientAuth: { method: 'none', clientId: 'us' } }, 'expected only one of the two forms'],
    [
      'without introspection',
      { introspectionUrl: undefined, clientAuth: { method: 'none', clientId: 'us' } },
      '"clientAuth" needs "introspectionUrl"',
    ],
    [
      'for a token endpoint',
      {
        clientAuth: {
          method: 'privateKeyJwt',
          clientId: 'us',
          assertionAudience: 'tokenEndpoint',
          key: { secretRef: { name: 'a', key: 'b' } },
        },
      },
      'introspection has no token endpoint',
    ],
  ])('refuses it: %s', (_name, more, problem) => {
    const said = problemsOf(proxy(more)).filter((one) => one.includes(at))
    expect(said.join()).toContain(problem.replace(/^\./, ''))
    expect(jsonSchemaAccepts('ProxyConfig', proxy(more))).toBe(false)
  })
})
