import { describe, expect, test } from 'vitest'
import {
  ConfigPlaces,
  renderProblem,
  resolveProxy,
  type ProxyOverrides,
  type ResolvedProxy,
} from '../../../../src/load/index.ts'
import { externalAuth, load, OAUTH, proxy, route, SPECS } from '../../../support/load/documents/build.ts'

const ANONYMOUS = { mode: 'anonymous' }

/** The config, or its problems as an error. */
function resolved(documents: readonly object[], overrides: ProxyOverrides = {}): ResolvedProxy {
  const { config, problems } = resolveProxy(load(...documents), overrides)
  if (config === undefined) throw new Error(problems.map(renderProblem).join('\n'))
  return config
}

const problemsOf = (documents: readonly object[], overrides: ProxyOverrides = {}): string =>
  (resolveProxy(load(...documents), overrides).problems ?? []).map(renderProblem).join('\n')

describe('resolveProxy', () => {
  test('gives everything that one process runs, paths absolute, units in the names', () => {
    const spec = {
      listen: { address: '127.0.0.1:9000', tls: { certFile: 'tls/c.pem', keyFile: '/k.pem' }, headerLimit: '8Ki' },
      admin: { address: '127.0.0.1:9001', tokenFile: './admin-token' },
      sessionKeySecretRef: { name: 's', key: 'k' },
      auth: {
        oauth: {
          ...OAUTH.oauth,
          providers: [{ ...OAUTH.oauth.providers[0], caCertPath: 'ca.pem', clientId: 'x', clientSecretFile: '../s' }],
        },
      },
      routes: [
        route({
          timeouts: { idle: '1m' },
          targetTls: { caCertPath: 'b.pem' },
          requiredScopes: ['read'],
          allowBoundTokens: true,
          sseKeepAlive: '15s',
          http2: true,
        }),
      ],
    }
    const config = resolved([externalAuth(SPECS.bearerToken), proxy(spec)])
    expect(config).toEqual({
      namespace: 'default',
      listen: {
        address: '127.0.0.1:9000',
        tls: { certFile: '/etc/extauth/tls/c.pem', keyFile: '/k.pem' },
        allowedOrigins: [],
        allowedHosts: [],
        headerLimitBytes: 8_192,
        connectionLimit: 10_000,
        bufferedBodiesBytes: undefined,
        trustedProxies: [],
      },
      admin: { address: '127.0.0.1:9001', tokenFile: '/etc/extauth/admin-token', inspector: 'off' },
      secretsDirectory: '/etc/extauth/secrets',
      maxCredentials: undefined,
      sessionKeySecretRef: { name: 's', key: 'k' },
      warnings: [],
      places: expect.any(ConfigPlaces) as unknown,
      authServers: [],
      cache: undefined,
      routes: [
        {
          name: 'a',
          path: '/a',
          exactTarget: false,
          target: { origin: 'https://backend.example.com', host: 'backend.example.com', path: '/mcp', query: '' },
          auth: {
            name: 'token',
            namespace: 'default',
            type: 'bearerToken',
            spec: { tokenSecretRef: { name: 'a', key: 'b' } },
            configHash: expect.stringMatching(/^[0-9a-f]{16}$/) as string,
            source: { file: '/etc/extauth/0.json', line: 1 },
          },
          callers: expect.objectContaining({ mode: 'oauth' }) as object,
          resourceUrl: 'https://mcp.example.com',
          requiredScopes: ['read'],
          allowBoundTokens: true,
          timeouts: { connect: 5_000, firstByte: 60_000, idle: 60_000 },
          limits: { bufferedBody: 10_485_760, evaluatedBody: 1_048_576 },
          credentials: [],
          passHeaders: [],
          sseKeepAlive: 15_000,
          http2: true,
          allowUpgrade: false,
          targetTls: { caCertPath: '/etc/extauth/b.pem', insecureSkipVerify: false },
          onMatcherError: 'skip',
          insecureAllowAnonymous: false,
        },
      ],
    })
    expect(config.routes[0]?.callers).toMatchObject({
      oauth: { providers: [{ caCertPath: '/etc/extauth/ca.pem', clientSecretFile: '/etc/s' }] },
    })
  })

  test.each([
    ['https://a.example.com', 'https://a.example.com', 'a.example.com', '/', ''],
    ['https://A.Example.com:443/', 'https://a.example.com', 'a.example.com', '/', ''],
    ['http://127.0.0.1:3000/mcp/', 'http://127.0.0.1:3000', '127.0.0.1:3000', '/mcp/', ''],
    ['https://a/x%2Fy/../z?b=%20&&c', 'https://a', 'a', '/x%2Fy/../z', 'b=%20&&c'],
    ['https://a?x=1', 'https://a', 'a', '/', 'x=1'],
    ['https://[::1]:8443/x?', 'https://[::1]:8443', '[::1]:8443', '/x', ''],
    ['https://a/b??c', 'https://a', 'a', '/b', '?c'],
  ])('the target %s keeps its path and query exactly', (target, origin, host, path, query) => {
    const config = resolved([
      externalAuth(SPECS.unauthenticated),
      proxy({ auth: ANONYMOUS, routes: [route({ target })] }),
    ])
    expect(config.routes[0]?.target).toEqual({ origin, host, path, query })
  })

  test('options of the command line beat the file', () => {
    const documents = [externalAuth(SPECS.bearerToken), proxy({ auth: OAUTH, routes: [route()] })]
    const overrides = {
      listen: '[::1]:1',
      admin: 'unix:/a.sock',
      secretsDirectory: '/s',
      callers: { mode: 'anonymous' as const },
    }
    const config = resolved(documents, overrides)
    expect(config.listen.address).toBe('[::1]:1')
    expect(config.admin.address).toBe('unix:/a.sock')
    expect(config.secretsDirectory).toBe('/s')
    expect(config.routes[0]?.callers).toEqual({ mode: 'anonymous' })
    expect(problemsOf(documents, { listen: 'nowhere' })).toBe('--listen  expected host:port, :port or unix:/path')
  })

  test('one process runs one ProxyConfig of one namespace', () => {
    const first = [externalAuth(SPECS.bearerToken, 'token', 'a'), proxy({ auth: OAUTH, routes: [route()] }, 'p', 'a')]
    const second = [externalAuth(SPECS.cloudSts, 'token', 'b'), proxy({ auth: OAUTH, routes: [route()] }, 'p', 'b')]
    expect(problemsOf([...first, ...second])).toContain(
      'one process serves one namespace, and these files have "a", "b"; expected --namespace',
    )
    expect(resolved([...first, ...second], { namespace: 'b' }).routes[0]?.auth.type).toBe('cloudSts')
    expect(problemsOf([...first, proxy({ auth: OAUTH }, 'q', 'a')])).toContain(
      'one process runs one ProxyConfig, and there is one at /etc/extauth/1.json:1',
    )
  })

  test('two protected resources on different hosts need different paths, for the sake of their documents', () => {
    const judge = (one: string, other: string, auth: object = OAUTH): string =>
      problemsOf([
        externalAuth(SPECS.unauthenticated),
        proxy({
          auth,
          routes: [
            route({ name: 'one', path: '/1', resourceUrl: one }),
            route({ name: 'other', path: '/2', resourceUrl: other }),
          ],
        }),
      ])
    const said = judge('https://a.example.com/mcp', 'https://b.example.com/mcp')
    expect(said).toContain('routes "one" and "other" are on different hosts and share the path "/mcp"')
    expect(said).toContain('routes[1].resourceUrl')
    expect(judge('https://a.example.com', 'https://b.example.com/')).toContain('share the path "/"')
    expect(judge('https://a.example.com/mcp', 'https://b.example.com/other')).toBe('')
    expect(judge('https://a.example.com/mcp', 'https://b.example.com/mcp?x')).toBe('')
    expect(judge('https://a.example.com/mcp', 'https://a.example.com/mcp')).toBe('')
    expect(judge('https://a.example.com/mcp', 'https://b.example.com/mcp', ANONYMOUS)).toBe('')
  })

  test('nothing to serve is a problem', () => {
    expect(problemsOf([proxy({ auth: OAUTH })])).toContain('no routes to serve')
    expect(problemsOf([externalAuth(SPECS.bearerToken)])).toContain('no routes to serve')
  })

  test('problems of loading are problems of the process', () => {
    const { problems } = resolveProxy(
      load(
        externalAuth({ type: 'x' }),
        proxy({ auth: OAUTH, routes: [route(), route({ name: 'b', path: '/b', target: 'x' })] }),
      ),
    )
    expect(problems?.map((problem) => problem.path)).toEqual(['spec.type', 'spec.routes[1].target'])
  })
})
