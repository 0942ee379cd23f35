import { describe, expect, test } from 'vitest'
import { renderProblem, resolveProxy } from '../../../../src/load/index.ts'
import { externalAuth, load, proxy, route, SPECS, workload } from '../../../support/load/documents/build.ts'

const ISSUER = 'https://idp.example.com'
const auth = {
  mode: 'oauth',
  oauth: {
    resourceUrl: 'https://mcp.example.com',
    providers: [{ name: 'corp', issuerUrl: ISSUER, audience: 'mcp' }],
  },
}
const github = { name: 'github', type: 'oidc', oidcConfig: { issuerUrl: 'https://github.example.com', clientId: 'c' } }
const key = { name: 'tracker', type: 'secret', secret: { label: 'API key' } }
const spec = (more: object = {}) => ({
  login: [{ issuerUrl: ISSUER, clientId: 'connect' }],
  providers: [github, key],
  ...more,
})
const inject = externalAuth({ type: 'upstreamInject', upstreamInject: { providerName: 'github' } })
const header = (more: object) =>
  externalAuth({ type: 'headerInjection', headerInjection: { headerName: 'X-Api-Key', ...more } })
const withConnections = (connections: object, more: object = {}) =>
  proxy({ auth, connections, routes: [route()], ...more })

const problemsOf = (...documents: readonly object[]): string =>
  (resolveProxy(load(...documents)).problems ?? []).map(renderProblem).join('\n')
const resolved = (...documents: readonly object[]) => {
  const { config } = resolveProxy(load(...documents))
  if (config === undefined) throw new Error(problemsOf(...documents))
  return config
}

describe('references to connections', () => {
  test.each([
    ['upstreamInject', inject, 'github', 'access_token'],
    ['headerInjection', header({ connectionName: 'tracker' }), 'tracker', 'access_token'],
    [
      'bearerToken',
      externalAuth({ type: 'bearerToken', bearerToken: { connectionName: 'github' } }),
      'github',
      'access_token',
    ],
    [
      'tokenExchange',
      externalAuth({
        type: 'tokenExchange',
        tokenExchange: { ...SPECS.tokenExchange.tokenExchange, subjectProviderName: 'github' },
      }),
      'github',
      'access_token',
    ],
    [
      'cloudSts',
      externalAuth({ ...SPECS.cloudSts, cloudSts: { ...SPECS.cloudSts.cloudSts, subjectProviderName: 'github' } }),
      'github',
      'id_token',
    ],
  ])('%s uses the connection that it names', (_type, document, provider, kind) => {
    const [only] = resolved(document, withConnections(spec())).routes
    expect(only?.auth.upstream).toMatchObject({ provider, kind, isConnection: true })
  })

  test.each([
    [
      header({ connectionName: 'trackr' }),
      'there is no connection "trackr", expected one of github, tracker; did you mean "tracker"?',
    ],
    [header({}), 'missing, expected "valueSecretRef" or "connectionName"'],
    [
      header({ connectionName: 'tracker', valueSecretRef: { name: 'a', key: 'b' } }),
      'expected either "valueSecretRef" or "connectionName"',
    ],
    [
      externalAuth({
        type: 'tokenExchange',
        tokenExchange: { ...SPECS.tokenExchange.tokenExchange, subjectProviderName: 'tracker' },
      }),
      '"tracker" holds keys',
    ],
    [externalAuth({ type: 'upstreamInject', upstreamInject: { providerName: 'gitlab' } }), 'github, tracker'],
  ])('a wrong reference is a problem', (document, message) => {
    expect(problemsOf(document, withConnections(spec()))).toContain(message)
  })

  test('without connections a name leads nowhere', () => {
    expect(problemsOf(header({ connectionName: 'tracker' }), proxy({ auth, routes: [route()] }))).toContain(
      'there are no connections',
    )
  })
})

describe('rules of connections', () => {
  const store = {
    type: 'kvstore',
    kvstore: { aclUserConfig: { passwordSecretRef: { name: 'a', key: 'b' } }, addr: 'a:1' },
  }
  const server = externalAuth(
    {
      type: 'embeddedAuthServer',
      embeddedAuthServer: { issuer: 'https://mcp.example.com', upstreamProviders: [github] },
    },
    'server',
  )
  const login = { authServerRef: { kind: 'MCPExternalAuthConfig', name: 'server' } }

  test.each<[string, object, string]>([
    ['a name twice', spec({ providers: [github, github] }), 'expected each name once'],
    ['no login for an issuer', spec({ login: [] }), `callers of ${ISSUER} have no way to prove who they are`],
    [
      'a login without callers',
      spec({ login: [...spec().login, { issuerUrl: 'https://other.example.com', clientId: 'c' }] }),
      'no route accepts callers of https://other.example.com',
    ],
    [
      'a login on plain http',
      spec({ login: [{ issuerUrl: 'http://idp.example.com', clientId: 'c' }] }),
      'codes and tokens would be readable on the network, expected https',
    ],
    ['a shared store without keys', spec({ storage: store }), 'storage of type "kvstore" or "file" needs it'],
    [
      'a directory of several people',
      spec({ storage: { type: 'file', file: { directory: 'state' } }, keySecretRefs: [{ name: 'a', key: 'b' }] }),
      'storage of type "file" is for one user',
    ],
    [
      'a redirect URI',
      spec({ providers: [{ ...github, oidcConfig: { ...github.oidcConfig, redirectUri: 'https://a/b' } }] }),
      'leave "redirectUri" out',
    ],
    [
      'a bad pattern',
      spec({ providers: [{ ...key, secret: { label: 'k', pattern: '(' } }] }),
      'expected a regular expression',
    ],
    ['a base URL on plain http', spec({ baseUrl: 'http://mcp.example.com' }), 'expected https'],
    ['a base URL with a trailing slash', spec({ baseUrl: 'https://mcp.example.com/' }), 'trailing slash'],
    ['an issuer twice', spec({ login: [...spec().login, ...spec().login] }), 'expected each issuerUrl once'],
    ['a login that compares nothing', spec({ login: [{ ...spec().login[0], match: [] }] }), 'login[0].match'],
    ['a login without a client', spec({ login: [{ issuerUrl: ISSUER }] }), 'login[0]'],
    ['no provider', spec({ providers: [] }), 'providers'],
    ['a type without its section', spec({ providers: [{ name: 'github', type: 'oauth2' }] }), 'oauth2Config'],
    ['the section of a different type', spec({ providers: [{ ...key, name: 'github', mcp: {} }] }), '"mcp"'],
    ['a misspelled field', spec({ provider: [] }), 'did you mean'],
    ['a negative age', spec({ providers: [{ ...github, maxAge: '-1h' }] }), 'providers[0].maxAge'],
    [
      'a test of keys over plain http',
      spec({ providers: [github, { ...key, secret: { label: 'k', test: { url: 'http://api.example.com/me' } } }] }),
      'providers[1].secret.test.url',
    ],
    [
      'a test header that the proxy sets itself',
      spec({
        providers: [github, { ...key, secret: { label: 'k', test: { url: 'https://a.example', header: 'Host' } } }],
      }),
      'providers[1].secret.test.header',
    ],
  ])('%s', (_name, connections, message) => {
    expect(problemsOf(inject, header({ connectionName: 'tracker' }), withConnections(connections))).toContain(message)
  })

  test('all problems are reported at once, each at its place', () => {
    const other = { issuerUrl: 'https://other.example.com', clientId: 'c' }
    const connections = spec({ singleUser: true, login: [other], providers: [github] })
    const found = problemsOf(
      inject,
      externalAuth({ type: 'bearerToken', bearerToken: { connectionName: 'gitlab' } }, 'second'),
      withConnections(connections, {
        listen: { address: ':8080' },
        routes: [route(), { ...route({ name: 'b', path: '/b' }), externalAuthConfigRef: { name: 'second' } }],
      }),
    )
    for (const [at, message] of [
      ['spec.connections.singleUser', 'everyone who reaches this bind'],
      ['spec.connections.baseUrl', 'missing, expected the URL of the proxy for browsers'],
      ['spec.connections.login[0].issuerUrl', 'no route accepts callers of https://other.example.com'],
      ['spec.routes[1].externalAuthConfigRef.name', 'MCPExternalAuthConfig "second" .*there is no connection "gitlab"'],
    ])
      expect(found).toMatch(new RegExp(`${at?.replace(/[.[\]]/g, '\\$&')} .*${message}`))
  })

  test('an unused provider and memory by default are warnings', () => {
    const { warnings = [] } = resolveProxy(load(inject, withConnections(spec())))
    expect(warnings.map(renderProblem).join('\n')).toMatch(/no route uses the connection "tracker"/)
    expect(warnings.map(renderProblem).join('\n')).toMatch(/lost at a restart/)
  })

  test('a bind that is not loopback needs the URL for browsers', () => {
    const listen = { address: '0.0.0.0:8080' }
    expect(problemsOf(inject, withConnections(spec(), { listen }))).toContain(
      'expected the URL of the proxy for browsers',
    )
    expect(problemsOf(inject, withConnections(spec({ baseUrl: 'https://mcp.example.com' }), { listen }))).toBe('')
  })

  test('connections and upstream providers share one namespace', () => {
    const both = proxy({
      ...login,
      connections: spec(),
      routes: [route({ externalAuthConfigRef: { name: 'server' } })],
    })
    expect(problemsOf(server, both)).toContain('expected different names')
  })

  test('callers of an embedded server need no login entry', () => {
    const corp = { name: 'corp', type: 'oidc', oidcConfig: { issuerUrl: ISSUER, clientId: 'c' } }
    const issuer = 'https://mcp.example.com'
    const withUpstream = (upstream: object): object =>
      externalAuth({ type: 'embeddedAuthServer', embeddedAuthServer: { issuer, upstreamProviders: [upstream] } }, 'as')
    const routes = [{ ...route(), resourceUrl: 'https://mcp.example.com/mcp' }]
    const using = (connections: object): object =>
      proxy({ authServerRef: { kind: 'MCPExternalAuthConfig', name: 'as' }, connections, routes })
    const none = spec({ login: [] })

    const [only] = resolved(inject, withUpstream(corp), using(none)).routes
    expect(only?.auth.upstream).toMatchObject({ provider: 'github', isConnection: true })
    expect(
      problemsOf(inject, withUpstream(corp), using(spec({ login: [{ issuerUrl: issuer, clientId: 'c' }] }))),
    ).toContain('whose users need no entry')
    const urls = { authorizationEndpoint: 'https://a.example.com/a', tokenEndpoint: 'https://a.example.com/t' }
    const nameless = { name: 'corp', type: 'oauth2', oauth2Config: { ...urls, clientId: 'c' } }
    expect(problemsOf(inject, withUpstream(nameless), using(none))).toContain('"corp" does not identify them')
  })

  test('anonymous callers have connections only as the single user of a machine', () => {
    const anonymous = { auth: { mode: 'anonymous' } }
    const single = spec({ login: [], singleUser: true })
    expect(problemsOf(inject, withConnections(spec({ login: [] }), anonymous))).toContain('"connections.singleUser"')
    expect(problemsOf(inject, withConnections(single, anonymous))).toBe('')
    const open = { ...anonymous, listen: { address: ':8080' } }
    expect(problemsOf(inject, withConnections(single, open))).toContain('would use the same accounts')
    const socket = { ...anonymous, listen: { address: 'unix:/run/extauth.sock' } }
    expect(problemsOf(inject, withConnections(single, socket))).toContain('because the bind is a Unix socket')
    expect(problemsOf(inject, withConnections({ ...single, baseUrl: 'http://127.0.0.1:9000' }, socket))).toBe('')
  })

  test('a directory keeps the connections of a single user, beside the file that names it', () => {
    const storage = { type: 'file', file: { directory: 'state' } }
    const single = spec({ login: [], singleUser: true, storage, keySecretRefs: [{ name: 'a', key: 'b' }] })
    const { config, warnings } = resolveProxy(load(inject, withConnections(single, { auth: { mode: 'anonymous' } })))
    expect(config?.connections?.spec.storage).toEqual({ type: 'file', file: { directory: '/etc/extauth/state' } })
    expect(warnings?.map(renderProblem).join()).not.toContain('lost at a restart')
  })
})

describe('a provider of type mcp', () => {
  const notes = { name: 'notes', type: 'mcp', mcp: {} }
  const bearer = externalAuth({ type: 'bearerToken', bearerToken: { connectionName: 'notes' } })

  test('is for one target', () => {
    const routes = [route(), { ...route(), name: 'second', path: '/second', target: 'https://second.example.com/mcp' }]
    expect(problemsOf(bearer, proxy({ auth, connections: spec({ providers: [notes] }), routes }))).toContain(
      'routes with different targets use the connection "notes"',
    )
    expect(resolved(bearer, withConnections(spec({ providers: [notes] }))).routes).toHaveLength(1)
  })

  test('needs its section, with one client at most', () => {
    expect(problemsOf(bearer, withConnections(spec({ providers: [{ name: 'notes', type: 'mcp' }] })))).toContain('mcp')
    const two = { ...notes, mcp: { clientId: 'c', clientAuth: { method: 'none', clientId: 'c' } } }
    expect(problemsOf(bearer, withConnections(spec({ providers: [two] })))).toContain('clientAuth')
  })
})

describe('connections of a manifest', () => {
  const manifest = (name: string, more: object = {}) =>
    workload('MCPRemoteProxy', name, {
      remoteUrl: 'https://backend.example.com/mcp',
      externalAuthConfigRef: { name: 'token' },
      auth,
      connections: spec(),
      ...more,
    })

  test('run in files, under the name of the manifest', () => {
    const { connections, routes } = resolved(inject, manifest('code'))
    expect(connections).toMatchObject({
      name: 'default/code',
      spec: { providers: [{ name: 'github' }, { name: 'tracker' }] },
    })
    expect(routes[0]?.auth.upstream).toMatchObject({ provider: 'github', isConnection: true })
  })

  test.each([
    [{ externalURL: 'https://mcp.example.com/' }, 'https://mcp.example.com'],
    [
      { externalURL: 'https://mcp.example.com', connections: spec({ baseUrl: 'https://a.example.com' }) },
      'https://a.example.com',
    ],
    [{}, undefined],
  ])('%o: pages are at the URL for clients', (more, baseUrl) => {
    expect(resolved(inject, manifest('code', more)).connections?.spec.baseUrl).toBe(baseUrl)
  })

  test('are replaced by those of a ProxyConfig', () => {
    const own = proxy({ auth, connections: spec({ providers: [github] }) })
    const { connections } = resolved(inject, manifest('code', { auth: undefined }), own)
    expect(connections).toMatchObject({ name: 'default/local', spec: { providers: [{ name: 'github' }] } })
  })

  test('are in one manifest of a process, and a problem names it', () => {
    expect(problemsOf(inject, manifest('one'), manifest('two'))).toContain('/etc/extauth/2.json:1:')
    expect(problemsOf(inject, manifest('one'), manifest('two'))).toContain(
      'one process has one "connections" section, and there is one at /etc/extauth/1.json:1',
    )
    expect(problemsOf(inject, manifest('one', { connections: spec({ login: [] }) }))).toContain(
      `route "one" uses a connection, and callers of ${ISSUER} have no way`,
    )
  })
})
