import { describe, expect, test } from 'vitest'
import { document, jsonSchemaAccepts, problemsOf } from '../../support/load/publish/validators.ts'

const auth = { mode: 'anonymous' }
const base = {
  name: 'a',
  path: '/a',
  target: 'https://backend.example.com/mcp',
  externalAuthConfigRef: { name: 'token' },
}
const token = {
  ...document({ type: 'bearerToken', bearerToken: { tokenSecretRef: { name: 'a', key: 'b' } } }),
  metadata: { name: 'token' },
}
const route = (more: object) => ({ auth, routes: [{ ...base, ...more }] })

const server = {
  ...document({
    type: 'embeddedAuthServer',
    embeddedAuthServer: {
      issuer: 'https://auth.example.com',
      upstreamProviders: [{ name: 'a', type: 'oidc', oidcConfig: { issuerUrl: 'https://i', clientId: 'c' } }],
    },
  }),
  metadata: { name: 'server' },
}
const secret = { name: 's', key: 'k' }
const cache = {
  storage: {
    type: 'kvstore',
    kvstore: {
      aclUserConfig: { usernameSecretRef: secret, passwordSecretRef: secret },
      sentinelConfig: { masterName: 'm', sentinelAddrs: ['redis:26379'] },
    },
  },
  keySecretRefs: [secret],
}

interface Row {
  readonly name: string
  readonly spec: unknown
  readonly problem?: string
  /** JSON Schema can't say it. */
  readonly unseen?: boolean
}

// prettier-ignore
const ROWS: readonly Row[] = [
  { name: 'one route', spec: route({}) },
  { name: 'everything', spec: { ...route({ resourceUrl: 'https://mcp.example.com/a', auth, requiredScopes: [], timeouts: { connect: '1s', firstByte: '0s', idle: '5m' }, limits: { bufferedBody: '1Mi' }, sseKeepAlive: '15s', http2: true, allowUpgrade: true, targetTls: { caCertPath: 'ca.pem', clientCertFile: 'c.pem', clientKeyFile: 'k.pem', serverName: 'x', insecureSkipVerify: false }, onMatcherError: 'deny', insecureAllowAnonymous: true }), listen: { address: '0.0.0.0:443', tls: { certFile: 'a', keyFile: 'b' }, allowedOrigins: ['https://app.example.com'], allowedHosts: ['mcp.example.com:443'], headerLimit: '32Ki' }, admin: { address: 'unix:/run/extauth.sock', tokenFile: 't' }, secretsDirectory: '/secrets', sessionKeySecretRef: { name: 's', key: 'k' } } },
  { name: 'an authorization server of another kind', spec: { authServerRef: { kind: 'Deployment', name: 'server' }, routes: [base] }, problem: 'spec.authServerRef.kind  "Deployment" is not known' },
  { name: 'an authorization server of another type', spec: { ...route({}), authServerRef: { name: 'token' } }, problem: 'spec.authServerRef.name  "token" (0.json:1) has type "bearerToken", expected "embeddedAuthServer"', unseen: true },
  { name: 'an authorization server that is not there', spec: { ...route({}), authServerRef: { name: 'sever' } }, problem: 'there is no MCPExternalAuthConfig "sever" in namespace "default", did you mean "server"?', unseen: true },
  { name: 'one authorization server as login and as external auth', spec: route({ externalAuthConfigRef: { name: 'server' }, authServerRef: { name: 'server' } }) },
  ...['10.0.0.0/8', '::1/128', 'fd00::/8'].map((range) => ({ name: `trusted proxies ${range}`, spec: { ...route({}), listen: { trustedProxies: [range] } } })),
  ...['10.0.0.1', '10.0.0.0/33', 'fd00::/129', 'localhost/8', '1.2.3/8'].map((range) => ({ name: `no trusted proxies: ${range}`, spec: { ...route({}), listen: { trustedProxies: [range] } }, problem: 'expected a range of addresses', unseen: true })),
  { name: 'a shared cache', spec: { ...route({}), cache } },
  { name: 'a shared cache that nothing seals', spec: { ...route({}), cache: { ...cache, keySecretRefs: [] } }, problem: 'spec.cache.keySecretRefs  too short' },
  { name: 'a route without external auth', spec: { auth, routes: [{ ...base, externalAuthConfigRef: undefined }] }, problem: 'externalAuthConfigRef  missing' },
  { name: 'a misspelled field', spec: route({ sseKeepalive: '1s' }), problem: 'did you mean "sseKeepAlive"' },
  { name: 'identity headers of gateways that pass', spec: route({ passHeaders: ['Remote-User', 'X-WebAuth-User', 'Impersonate-Group'] }) },
  { name: 'a token that would pass', spec: route({ passHeaders: ['Remote-User', 'Cf-Access-Jwt-Assertion'] }), problem: 'spec.routes[0].passHeaders[1]  this is a token (Cloudflare Access', unseen: true },
  { name: 'a credential of the caller that would pass', spec: route({ passHeaders: ['Cookie'] }), problem: 'spec.routes[0].passHeaders[0]  expected a header that is removed by default', unseen: true },
  { name: 'a header that passes anyway', spec: route({ passHeaders: ['Accept'] }), problem: 'spec.routes[0].passHeaders[0]  expected a header that is removed by default, such as "Remote-User"', unseen: true },
  { name: 'a size as a number', spec: route({ limits: { bufferedBody: 1024 } }) },
  ...['10MiB', '-1', '2Ti', 'x', ''].map((bufferedBody) => ({ name: `no size: "${bufferedBody}"`, spec: route({ limits: { bufferedBody } }), problem: 'spec.routes[0].limits.bufferedBody  expected a size', unseen: bufferedBody === '2Ti' })),
  { name: 'a header limit below any use', spec: { ...route({}), listen: { headerLimit: '1' } }, problem: 'headerLimit', unseen: true },
  { name: 'a timer beyond what a timer holds', spec: route({ timeouts: { idle: '600h' } }), problem: 'at most 596h', unseen: true },
  ...['/', '/a/b', '/a.b_c~d', '/a:b@c'].map((path) => ({ name: `path ${path}`, spec: route({ path }) })),
  ...['', 'a', '/a/', '//', '/a//b', '/a/..', '/./a', '/a?b', '/a#', '/a%20b', '/a\\b', '/a b'].map((path) => ({ name: `no path: "${path}"`, spec: route({ path }), problem: 'spec.routes[0].path' })),
  ...['https://a.example.com', 'http://127.0.0.1:3000/mcp?x=1&y', 'https://a.example.com/a%2Fb', 'https://[::1]:8443/x'].map((target) => ({ name: `target ${target}`, spec: route({ target }) })),
  ...['a.example.com/mcp', 'ws://a', 'https://u:p@a', 'https://a/#x', 'https://a/ä'].map((target) => ({ name: `no target: ${target}`, spec: route({ target }), problem: 'spec.routes[0].target' })),
  ...['127.0.0.1:0', '[::1]:8080', ':8080', 'localhost:1', '*:80', 'unix:/tmp/a.sock'].map((address) => ({ name: `address ${address}`, spec: { ...route({}), listen: { address } } })),
  ...['8080', 'localhost', 'unix:a.sock', 'http://a:1', 'a:b'].map((address) => ({ name: `no address: ${address}`, spec: { ...route({}), listen: { address } }, problem: 'expected host:port, :port or unix:/path' })),
  { name: 'a port beyond 65535', spec: { ...route({}), listen: { address: 'a:65536' } }, problem: 'at most 65535', unseen: true },
  ...['https://a.example.com/', 'a.example.com', '*'].map((origin) => ({ name: `no origin: ${origin}`, spec: { ...route({}), listen: { allowedOrigins: [origin] } }, problem: 'expected an origin' })),
  { name: 'a client certificate without key', spec: route({ targetTls: { clientCertFile: 'a' } }), problem: '"clientCertFile" needs "clientKeyFile"' },
  { name: 'a certificate without key', spec: { ...route({}), listen: { tls: { certFile: 'a' } } }, problem: 'keyFile  missing' },
  { name: 'onMatcherError: allow', spec: route({ onMatcherError: 'allow' }), problem: 'expected one of skip, deny' },
  { name: 'two routes of one name', spec: { auth, routes: [base, { ...base, path: '/b' }] }, problem: 'spec.routes[1].name  routes[0] has the same name', unseen: true },
  { name: 'two routes of one path', spec: { auth, routes: [base, { ...base, name: 'b' }] }, problem: 'spec.routes[1].path  routes[0] has the same path', unseen: true },
]

describe('ProxyConfig', () => {
  test.each(ROWS.map((row) => [row.problem === undefined ? 'accepts' : 'refuses', row.name, row] as const))(
    '%s %s',
    (_verdict, _name, { spec, problem, unseen = false }) => {
      const value: unknown = JSON.parse(JSON.stringify(document(spec, 'ProxyConfig')))
      const problems = problemsOf(token, server, value)
      if (problem === undefined) expect(problems).toEqual([])
      else expect(problems.join('\n')).toContain(problem)
      expect(jsonSchemaAccepts('ProxyConfig', value)).toBe(problem === undefined || unseen)
    },
  )

  test('one mistake in a route hides no other', () => {
    const spec = {
      auth,
      routes: [base, { ...base, path: 'b', colour: 'red', externalAuthConfigRef: { name: 'tokn' } }],
    }
    expect(problemsOf(token, document(spec, 'ProxyConfig'))).toEqual([
      expect.stringContaining('spec.routes[1].name  routes[0] has the same name'),
      expect.stringContaining('spec.routes[1].path  expected a path prefix'),
      expect.stringContaining('spec.routes[1].externalAuthConfigRef.name  there is no MCPExternalAuthConfig "tokn"'),
      expect.stringContaining('spec.routes[1].colour  unknown field "colour"'),
    ])
  })
})
