import { describe, expect, test } from 'vitest'
import { renderProblem, resolveProxy, type ProxyOverrides } from '../../../../src/load/index.ts'
import type { OAuthSection } from '../../../../src/resources/index.ts'
import { externalAuth, load, OAUTH, proxy, route, SPECS, workload } from '../../../support/load/documents/build.ts'

const token = externalAuth(SPECS.bearerToken)
const remote = (spec: object, name = 'w') =>
  workload('MCPRemoteProxy', name, {
    remoteUrl: 'https://backend.example.com/mcp',
    externalAuthConfigRef: { name: 'token' },
    ...spec,
  })
const inline = { issuer: 'https://idp.example.com', audience: 'mcp' }
const oidc = (more: object = {}, of: object = {}) => ({
  oidcConfig: { type: 'inline', inline: { ...inline, ...more }, ...of },
})

function resolve(documents: readonly object[], overrides: ProxyOverrides = {}) {
  const { config, problems } = resolveProxy(load(token, ...documents), overrides)
  return {
    problems: (problems ?? []).map(renderProblem).join('\n'),
    warnings: (config?.warnings ?? []).join('\n'),
    routes: config?.routes ?? [],
  }
}

function sectionOf(...documents: readonly object[]): OAuthSection['oauth'] {
  const { problems, routes } = resolve(documents)
  expect(problems).toBe('')
  const callers = routes[0]?.callers
  if (callers?.mode !== 'oauth') throw new Error('callers are anonymous')
  return callers.oauth
}

describe('oidcConfig of a manifest becomes a provider (decisions §1)', () => {
  test('inline, with everything', () => {
    const everything = {
      jwksUrl: 'https://idp.example.com/keys',
      introspectionUrl: 'https://idp.example.com/introspect',
      clientId: 'proxy',
      clientSecretRef: { name: 'oidc', key: 'secret' },
      caBundleRef: { configMapRef: { name: 'ca', key: 'ca.crt' } },
      jwksAuthTokenPath: 'token',
      jwksAllowPrivateIP: true,
      scopes: ['mcp'],
    }
    const section = sectionOf(remote(oidc(everything, { resourceUrl: 'https://mcp.example.com/w' })))
    expect(section).toMatchObject({
      resourceUrl: 'https://mcp.example.com/w',
      scopesSupported: ['mcp'],
      publicPaths: [],
    })
    const directory = `${process.cwd()}/secrets`
    expect(section.providers).toEqual([
      {
        name: 'oidcConfig',
        issuerUrl: 'https://idp.example.com',
        audience: 'mcp',
        jwksUrl: 'https://idp.example.com/keys',
        introspectionUrl: 'https://idp.example.com/introspect',
        clientId: 'proxy',
        clientSecretFile: `${directory}/oidc/secret`,
        caCertPath: `${directory}/ca/ca.crt`,
        authTokenFile: '/etc/extauth/token',
        audienceClaim: 'aud',
        allowPrivateIP: true,
        insecureAllowHttp: false,
      },
    ])
  })

  test.each([
    [{ jwksURL: 'https://idp.example.com/keys' }, { jwksUrl: 'https://idp.example.com/keys' }],
    [{ introspectionURL: 'https://idp.example.com/i' }, { introspectionUrl: 'https://idp.example.com/i' }],
    [{ introspectionURL: 'https://idp.example.com/i', clientID: 'c' }, { clientId: 'c' }],
    [{ protectedResourceAllowPrivateIP: true }, { allowPrivateIP: true }],
    [{ insecureAllowHTTP: true }, { insecureAllowHttp: true }],
    [{ thvCABundlePath: '/ca.pem' }, { caCertPath: '/ca.pem' }],
    [{ caBundleRef: { secretRef: { name: 'a', key: 'b' } } }, { caCertPath: `${process.cwd()}/secrets/a/b` }],
  ])('inline %j', (more, expected) => {
    expect(sectionOf(remote(oidc(more))).providers[0]).toMatchObject(expected)
  })

  const cluster = {
    issuerUrl: 'https://kubernetes.default.svc',
    audience: 'toolhive',
    jwksUrl: 'https://kubernetes.default.svc/openid/v1/jwks',
    caCertPath: '/var/run/secrets/kubernetes.io/serviceaccount/ca.crt',
    authTokenFile: '/var/run/secrets/kubernetes.io/serviceaccount/token',
    allowPrivateIP: true,
  }
  test.each([
    [{}, cluster],
    [{ type: 'kubernetes' }, cluster],
    [{ type: 'kubernetes', kubernetes: {} }, cluster],
    [
      { type: 'kubernetes', kubernetes: { issuer: 'https://oidc.example.com/id', audience: 'mcp' } },
      { ...cluster, issuerUrl: 'https://oidc.example.com/id', audience: 'mcp' },
    ],
    [
      { type: 'kubernetes', kubernetes: { serviceAccount: 'client', namespace: 'apps' } },
      { ...cluster, subject: 'system:serviceaccount:apps:client' },
    ],
    [
      { type: 'kubernetes', kubernetes: { serviceAccount: 'client' } },
      { ...cluster, subject: 'system:serviceaccount:default:client' },
    ],
  ])('kubernetes %j', (oidcConfig, expected) => {
    expect(sectionOf(remote({ oidcConfig })).providers[0]).toMatchObject(expected)
  })

  test('kubernetes without the credentials of the pod', () => {
    const [provider] = sectionOf(remote({ oidcConfig: { kubernetes: { useClusterAuth: false } } })).providers
    expect(provider).toMatchObject({ allowPrivateIP: false, jwksUrl: undefined })
    expect(provider?.authTokenFile).toBeUndefined()
  })

  test('for each route its own, before the section of a ProxyConfig', () => {
    const { routes } = resolve([proxy({ auth: OAUTH }), remote(oidc()), remote({}, 'v')])
    expect(routes.map(({ callers }) => callers.mode === 'oauth' && callers.oauth.providers[0]?.name)).toEqual([
      'oidcConfig',
      'corp',
    ])
  })

  test('a bind that is not loopback needs the URL of the resource, from either place', () => {
    expect(resolve([remote(oidc())], { listen: ':80' }).problems).toContain(
      'expected the URL of this protected resource',
    )
    expect(resolve([remote(oidc({}, { resourceUrl: 'https://a' }))], { listen: ':80' }).problems).toBe('')
    expect(resolve([remote({ ...oidc(), resourceUrl: 'https://a' })], { listen: ':80' }).problems).toBe('')
  })

  test('plain http is reported where it is written', () => {
    expect(resolve([remote(oidc({ issuer: 'http://idp.example.com' }))]).problems).toContain(
      'spec.oidcConfig.inline.issuer  plain http is only used for loopback',
    )
    expect(resolve([remote(oidc({ jwksUrl: 'http://idp.corp.svc/keys' }))]).warnings).toContain(
      'spec.oidcConfig.inline.jwksUrl  plain http: anyone on the network path can read and change requests',
    )
  })

  test('the same for a VirtualMCPServer', () => {
    const status = { discoveredBackends: [{ name: 'a', url: 'https://a.example.com' }] }
    const incomingAuth = { type: 'oidc', ...oidc() }
    const section = sectionOf({ ...workload('VirtualMCPServer', 'hub', { incomingAuth }), status })
    expect(section.providers[0]?.issuerUrl).toBe('https://idp.example.com')
  })
})

describe('an auth section in a manifest', () => {
  const auth = {
    oauth: {
      resourceUrl: 'https://mcp.example.com',
      providers: [
        {
          name: 'corp',
          issuerUrl: 'https://idp.example.com',
          audience: 'mcp',
          clientId: 'c',
          clientSecretRef: { name: 'a', key: 'b' },
          caBundleRef: { configMapRef: { name: 'ca', key: 'pem' } },
        },
      ],
    },
  }

  test('finds its files beside the secrets', () => {
    const { config } = resolveProxy(load(token, remote({ auth })), { secretsDirectory: '/run/s' })
    expect(config?.routes[0]).toMatchObject({
      resourceUrl: 'https://mcp.example.com',
      callers: { oauth: { providers: [{ clientSecretFile: '/run/s/a/b', caCertPath: '/run/s/ca/pem' }] } },
    })
  })

  test('excludes an oidcConfig', () => {
    expect(resolve([remote({ auth, ...oidc() })]).problems).toContain('"auth" and "oidcConfig" are mutually exclusive')
  })
})

describe('what can not be honoured is never dropped in silence', () => {
  const rows: readonly (readonly [string, object])[] = [
    ['spec.oidcConfig', { oidcConfig: { type: 'configMap', configMap: { name: 'x' } } }],
    ['spec.authzConfig', { authzConfig: { type: 'inline' } }],
    ['spec.authzConfigRef', { authzConfigRef: { name: 'x' } }],
    ['spec.oidcConfig.inline', oidc({ audience: undefined })],
    ['spec.oidcConfig.inline.requiredGroups', oidc({ requiredGroups: ['a'] })],
    ['spec.oidcConfig.kubernetes.namespace', { oidcConfig: { kubernetes: { namespace: 'a' } } }],
  ]

  test.each(rows)('%s is a problem that names the ways out', (path, spec) => {
    const { problems } = resolve([remote(spec)])
    expect(problems).toContain(`MCPRemoteProxy/w  ${path}  says who may call and `)
    expect(problems).toContain(
      'expected --callers FILE, a ProxyConfig with "auth" among the files, or --ignore-manifest',
    )
  })

  test.each(rows)('%s is a warning where a ProxyConfig says who may call', (path, spec) => {
    const { problems, warnings } = resolve([remote(spec), proxy({ auth: OAUTH })])
    expect(problems).toBe('')
    expect(warnings).toContain(`${path}  says who may call and `)
    expect(warnings).toContain('callers are those of the ProxyConfig at /etc/extauth/2.json:1')
  })

  test.each([...rows, ['spec.oidcConfig', oidc()] as const])('%s is a warning with the options', (path, spec) => {
    const [known] = resolve([proxy({ auth: OAUTH, routes: [route()] })]).routes
    const byOption = resolve([remote(spec)], { callers: known?.callers })
    expect(byOption.problems).toBe('')
    expect(byOption.warnings).toMatch(new RegExp(`${path.replaceAll('.', '\\.')}  .*--callers says who may call`))
    expect(byOption.routes[0]?.callers).toBe(known?.callers)
    const ignored = resolve([remote(spec)], { ignoreManifestCallers: true })
    expect(ignored.warnings).toMatch(new RegExp(`${path.replaceAll('.', '\\.')}  .*--ignore-manifest-callers is given`))
    expect(ignored.routes[0]?.callers.mode).toBe('anonymous')
  })

  test('a manifest without a route restricts no caller', () => {
    const server = workload('MCPServer', 's', { image: 'x', oidcConfig: { type: 'configMap' } })
    expect(resolve([server, remote({})]).problems).toBe('')
  })
})

test('timeouts, limits and keep-alive of a manifest are those of its route', () => {
  const [only] = resolve([
    remote({ timeouts: { firstByte: '2m' }, limits: { bufferedBody: '1Mi' }, sseKeepAlive: '15s' }),
  ]).routes
  expect(only).toMatchObject({
    timeouts: { connect: 5_000, firstByte: 120_000 },
    limits: { bufferedBody: 1_048_576 },
    sseKeepAlive: 15_000,
  })
})
