import { describe, expect, test } from 'vitest'
import { renderProblem, resolveProxy, type ProxyOverrides, type ResolvedProxy } from '../../../../src/load/index.ts'
import { externalAuth, load, OAUTH, proxy, route, SPECS, workload } from '../../../support/load/documents/build.ts'

const oidc = (name: string) => ({ name, type: 'oidc', oidcConfig: { issuerUrl: `https://${name}`, clientId: 'c' } })
const oauth2 = (name: string) => ({
  name,
  type: 'oauth2',
  oauth2Config: {
    authorizationEndpoint: 'https://github.example.com/authorize',
    tokenEndpoint: 'https://github.example.com/token',
    clientId: 'c',
    userInfo: { endpointUrl: 'https://github.example.com/user' },
  },
})
const embedded = (more: object = {}) => ({
  type: 'embeddedAuthServer',
  embeddedAuthServer: {
    issuer: 'https://mcp.example.com',
    upstreamProviders: [oidc('corp'), oauth2('github')],
    ...more,
  },
})
const server = (more: object = {}, name = 'server') => externalAuth(embedded(more), name)
const exchange = (more: object = {}) =>
  externalAuth({ type: 'tokenExchange', tokenExchange: { ...SPECS.tokenExchange.tokenExchange, ...more } })
const sts = (more: object = {}) => externalAuth({ type: 'cloudSts', cloudSts: { ...SPECS.cloudSts.cloudSts, ...more } })
const login = { authServerRef: { kind: 'MCPExternalAuthConfig', name: 'server' } }
const at = (more: object = {}) => route({ resourceUrl: 'https://mcp.example.com/a', ...more })
const token = externalAuth(SPECS.bearerToken)

function resolved(documents: readonly object[], overrides: ProxyOverrides = {}): ResolvedProxy {
  const { config, problems } = resolveProxy(load(...documents), overrides)
  if (config === undefined) throw new Error(problems.map(renderProblem).join('\n'))
  return config
}
const first = (documents: readonly object[], overrides: ProxyOverrides = {}) => {
  const [only] = resolved(documents, overrides).routes
  if (only === undefined) throw new Error('no route')
  return only
}
const problemsOf = (...documents: readonly object[]): string =>
  (resolveProxy(load(...documents)).problems ?? []).map(renderProblem).join('\n')

test('a role that the identity of the proxy assumes needs no token of an upstream', () => {
  const documents = [sts({ source: { type: 'ambient' } }), server(), proxy({ ...login, routes: [at()] })]
  expect(first(documents).auth.upstream).toBeUndefined()
  expect(first([sts(), ...documents.slice(1)]).auth.upstream).toMatchObject({ kind: 'id_token' })
})

describe('who logs callers in (authserver.md §2.3)', () => {
  test('the default, for routes that have no auth of their own', () => {
    const routes = [at(), at({ name: 'b', path: '/b', auth: OAUTH })]
    const config = resolved([token, server(), proxy({ ...login, routes })])
    expect(config.authServers).toMatchObject([{ name: 'default/server', spec: { issuer: 'https://mcp.example.com' } }])
    const [a, b] = config.routes
    expect(a?.authServer?.server).toBe(config.authServers[0])
    expect(a?.callers).toMatchObject({
      mode: 'oauth',
      oauth: { providers: [], resourceUrl: 'https://mcp.example.com/a' },
    })
    expect(b?.authServer).toBeUndefined()
  })

  test('beside the providers of an auth section', () => {
    const { callers, authServer } = first([token, server(), proxy({ ...login, auth: OAUTH, routes: [at()] })])
    expect(callers).toMatchObject({ oauth: { providers: [{ name: 'corp' }] } })
    expect(authServer?.server.name).toBe('default/server')
    const own = first([token, server(), proxy({ routes: [at({ ...login, auth: OAUTH })] })])
    expect(own.callers).toMatchObject({ oauth: { providers: [{ name: 'corp' }] } })
    expect(own.authServer).toBeDefined()
  })

  test('the server that says how the backend is reached: the backend gets the token of its first upstream', () => {
    const { auth, authServer } = first([
      server(),
      proxy({ auth: { mode: 'anonymous' }, routes: [at({ externalAuthConfigRef: { name: 'server' } })] }),
    ])
    expect(auth).toMatchObject({
      name: 'server',
      type: 'upstreamInject',
      spec: { providerName: 'corp' },
      upstream: { provider: 'corp', kind: 'access_token', issuer: 'https://mcp.example.com', isExplicit: true },
    })
    expect(authServer?.providers).toEqual(['corp'])
  })

  test.each(['MCPRemoteProxy', 'MCPServerEntry'])('the same for %s', (kind) => {
    const single = server({ upstreamProviders: [oidc('corp')] })
    const reference = { externalAuthConfigRef: { name: 'server' } }
    const { auth } = first([single, workload(kind, 'w', { remoteUrl: 'https://b', ...reference })])
    expect(auth.type).toBe('upstreamInject')
  })

  test('an authorization server alone on a manifest is both, and beside another config it is the login', () => {
    const single = server({ upstreamProviders: [oidc('corp')] })
    const alone = first([single, workload('MCPRemoteProxy', 'w', { remoteUrl: 'https://b', ...login })])
    expect([alone.auth.type, alone.authServer?.server.name]).toEqual(['upstreamInject', 'default/server'])
    const spec = { remoteUrl: 'https://b', externalAuthConfigRef: { name: 'token' }, ...login }
    const beside = first([single, token, workload('MCPRemoteProxy', 'w', spec)])
    expect([beside.auth.type, beside.authServer?.server.name]).toEqual(['bearerToken', 'default/server'])
  })

  test.each([
    ['none', { routes: [at()] }, 'spec.auth  missing, so the mode is "oauth"'],
    ['none for one route', { routes: [at({ auth: OAUTH }), at({ name: 'b', path: '/b' })] }, 'spec.auth  missing'],
    ['one for each route', { routes: [at({ auth: OAUTH })] }, undefined],
    ['an authorization server instead', { ...login, routes: [at()] }, undefined],
    ['an authorization server for the route', { routes: [at(login)] }, undefined],
    ['one that is the external auth too', { routes: [at({ externalAuthConfigRef: { name: 'server' } })] }, undefined],
  ])('an auth section: %s', (_name, spec, problem) => {
    const problems = problemsOf(token, server(), proxy(spec))
    if (problem === undefined) expect(problems).toBe('')
    else expect(problems).toContain(problem)
    const { callers } = first([token, proxy({ auth: OAUTH, routes: [at()] })])
    expect(resolveProxy(load(token, server(), proxy(spec)), { callers }).problems).toBeUndefined()
  })

  test('anonymous callers do not log in', () => {
    const routes = [at()]
    expect(problemsOf(token, server(), proxy({ ...login, auth: { mode: 'anonymous' }, routes }))).toContain(
      'spec.authServerRef  callers are anonymous by default',
    )
    expect(
      problemsOf(token, server(), proxy({ auth: OAUTH, routes: [at({ ...login, auth: { mode: 'anonymous' } })] })),
    ).toContain('spec.routes[0].auth  callers are anonymous here, and callers log in to "default/server"')
  })

  test('the same server as external auth and as login, of the route or by default, is one; another is one too many', () => {
    const both = { externalAuthConfigRef: { name: 'server' } }
    for (const spec of [{ ...login, routes: [at(both)] }, { routes: [at({ ...both, ...login })] }]) {
      const { auth, authServer } = first([server({ upstreamProviders: [oidc('corp')] }), proxy(spec)])
      expect([auth.type, authServer?.server.name]).toEqual(['upstreamInject', 'default/server'])
    }
    const other = server({ issuer: 'https://login.example.com/other' }, 'other')
    const third = { externalAuthConfigRef: { name: 'other' } }
    expect(problemsOf(server(), other, proxy({ ...login, routes: [at(third)] }))).toContain(
      'callers of this route log in to another one already',
    )
    expect(problemsOf(server(), other, proxy({ routes: [at({ ...third, ...login })] }))).toContain(
      '"authServerRef" names another one',
    )
  })

  test('the bind that is not loopback needs to know the resource', () => {
    const listen = { address: ':443' }
    expect(problemsOf(token, server(), proxy({ ...login, listen, routes: [route()] }))).toContain(
      'spec.routes[0].resourceUrl  missing',
    )
    expect(first([token, server(), proxy({ ...login, routes: [route()] })]).resourceUrl).toBeUndefined()
  })
})

describe('several servers', () => {
  const two = (issuer: string) => [
    token,
    server(),
    server({ issuer }, 'other'),
    proxy({ ...login, routes: [at(), at({ name: 'b', path: '/b', authServerRef: { name: 'other' } })] }),
  ]

  test('need different issuer paths, on whatever hosts', () => {
    expect(problemsOf(...two('https://other.example.com'))).toContain(
      '"other" (/etc/extauth/2.json:1) has the issuer path "/" of "default/server" (/etc/extauth/1.json:1)',
    )
    expect(resolved(two('https://mcp.example.com/other')).authServers).toHaveLength(2)
  })

  test('hide what is below their paths, which is a warning', () => {
    const documents = [token, server(), proxy({ ...login, routes: [at({ path: '/' })] })]
    expect(resolved(documents).warnings.join('\n')).toContain('"/oauth" below this path belongs to "default/server"')
    const elsewhere = [token, server(), proxy({ ...login, routes: [at()] })]
    expect(resolved(elsewhere).warnings.join('\n')).not.toContain('below this path')
  })
})

describe('upstream tokens (authserver.md §2.5)', () => {
  const upstreamOf = (auth: object, routes = [at()]) => first([server(), auth, proxy({ ...login, routes })])

  test('the first upstream is filled in, for the callers who log in here', () => {
    const { auth, authServer } = upstreamOf(exchange())
    expect(auth.upstream).toEqual({
      provider: 'corp',
      kind: 'access_token',
      issuer: 'https://mcp.example.com',
      isExplicit: false,
    })
    expect(authServer?.providers).toEqual(['corp'])
    const notes = resolveProxy(load(server(), exchange(), proxy({ ...login, routes: [at()] }))).notes ?? []
    expect(notes.map(renderProblem).join('\n')).toContain('"subjectProviderName" is "corp" for callers who log in here')
  })

  test('a named one is visited by logins, after the first', () => {
    const { auth, authServer } = upstreamOf(exchange({ subjectProviderName: 'github' }))
    expect(auth.upstream).toMatchObject({ provider: 'github', isExplicit: true })
    expect(authServer?.providers).toEqual(['corp', 'github'])
  })

  test('an exchange for an ID token takes the ID token, and so does STS', () => {
    expect(upstreamOf(exchange({ subjectTokenType: 'id_token' })).auth.upstream?.kind).toBe('id_token')
    expect(upstreamOf(sts({ subjectProviderName: 'corp' })).auth.upstream).toMatchObject({ kind: 'id_token' })
    expect(upstreamOf(sts()).auth.upstream).toMatchObject({ provider: 'corp', kind: 'id_token', isExplicit: false })
  })

  test('an upstream without ID tokens is refused where it is named, and not filled in', () => {
    expect(problemsOf(server(), sts({ subjectProviderName: 'github' }), proxy({ ...login, routes: [at()] }))).toContain(
      '"subjectProviderName": "github" is not an OpenID provider and issues no ID tokens',
    )
    const github = server({ upstreamProviders: [oauth2('github')] })
    expect(first([github, sts(), proxy({ ...login, routes: [at()] })]).auth.upstream).toBeUndefined()
  })

  test.each([
    [exchange({ subjectProviderName: 'gitlab' }), '"subjectProviderName"'],
    [externalAuth({ type: 'upstreamInject', upstreamInject: { providerName: 'gitlab' } }), '"providerName"'],
  ])('one that the server does not have is a problem', (auth, field) => {
    expect(problemsOf(server(), auth, proxy({ ...login, routes: [at()] }))).toContain(
      `${field}: "default/server" has no upstream provider "gitlab", did you mean "github"?`,
    )
  })

  test('static credentials and callers from elsewhere have none', () => {
    expect(upstreamOf(token).auth.upstream).toBeUndefined()
    expect(first([exchange(), proxy({ auth: OAUTH, routes: [at()] })]).auth.upstream).toBeUndefined()
  })

  test('a named one without logins is a warning: every request gets no_session', () => {
    const config = resolved([exchange({ subjectProviderName: 'corp' }), proxy({ auth: OAUTH, routes: [at()] })])
    expect(config.routes[0]?.auth.upstream).toMatchObject({ provider: 'corp', issuer: undefined, isExplicit: true })
    expect(config.warnings.join('\n')).toContain('no caller has a token of the upstream provider "corp"')
  })

  test('upstreamInject without logins is a problem', () => {
    expect(problemsOf(externalAuth(SPECS.upstreamInject), proxy({ auth: OAUTH, routes: [at()] }))).toContain(
      'expected an "authServerRef" for this route',
    )
  })
})

describe('redirect URIs to register', () => {
  const notesOf = (...documents: readonly object[]) =>
    (resolveProxy(load(...documents)).notes ?? []).map(({ message }) => message)

  test('are those of the resources whose logins visit an upstream', () => {
    const routes = [at(), at({ name: 'b', path: '/b', resourceUrl: 'https://mcp.example.com/b/' })]
    expect(notesOf(token, server(), proxy({ ...login, routes }))).toEqual([
      'register at the upstream provider "corp" of "default/server" the redirect URI https://mcp.example.com/a/oauth/callback',
      'register at the upstream provider "corp" of "default/server" the redirect URI https://mcp.example.com/b/oauth/callback',
    ])
  })

  test('or the one that is configured, once', () => {
    const corp = oidc('corp')
    const upstream = { ...corp, oidcConfig: { ...corp.oidcConfig, redirectUri: 'https://x.example.com/back' } }
    const routes = [at(), at({ name: 'b', path: '/b' })]
    expect(notesOf(token, server({ upstreamProviders: [upstream] }), proxy({ ...login, routes }))).toEqual([
      'register at the upstream provider "corp" of "default/server" the redirect URI https://x.example.com/back',
    ])
  })
})

test('an upstream over plain http is refused beyond loopback and in-cluster names', () => {
  const plain = (host: string) => {
    const github = oauth2('github')
    const oauth2Config = { ...github.oauth2Config, tokenEndpoint: `http://${host}/token` }
    return [token, server({ upstreamProviders: [{ ...github, oauth2Config }] }), proxy({ ...login, routes: [at()] })]
  }
  expect(problemsOf(...plain('github.example.com'))).toContain(
    '"upstreamProviders[0].oauth2Config.tokenEndpoint": plain http is only used for loopback',
  )
  expect(problemsOf(...plain('localhost:8080'))).toBe('')
  expect(resolved(plain('idp.corp.svc')).warnings.join('\n')).toContain('tokenEndpoint  plain http')
})

describe('an upstream that no route uses', () => {
  const warned = (documents: readonly object[]) =>
    resolveProxy(load(...documents)).warnings?.flatMap(({ path, message }) =>
      message.includes('no login visits it') ? [path] : [],
    )

  test('is warned of, where it is named', () => {
    expect(warned([server(), exchange(), proxy({ routes: [at(login)] })])).toEqual([
      'spec.embeddedAuthServer.upstreamProviders[1].name',
    ])
  })

  test('is not when a route uses it, nor the first, nor one of a server without routes', () => {
    expect(warned([server(), exchange({ subjectProviderName: 'github' }), proxy({ routes: [at(login)] })])).toEqual([])
    expect(warned([server(), exchange(), proxy({ auth: OAUTH, routes: [at()] })])).toEqual([])
  })
})

test('a plain http OpenID upstream on this machine is reported with the allowed values, once', () => {
  const corp = { name: 'corp', type: 'oidc', oidcConfig: { issuerUrl: 'http://localhost:9000', clientId: 'c' } }
  const documents = [server({ upstreamProviders: [corp] }), token, proxy({ ...login, routes: [at()] })]
  const messages = (resolveProxy(load(...documents)).problems ?? []).map(({ path, message }) => `${path}: ${message}`)
  expect(messages).toEqual([
    expect.stringMatching(/oidcConfig\.issuerUrl: expected an https URL, on this machine too .*type oauth2/),
  ])
})
