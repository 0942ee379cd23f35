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

describe('the equivalent of Cedar policies', () => {
  const policy =
    'permit(principal, action == Action::"call_tool", resource == Tool::"search") when { principal.claim_team == "a" };'
  const cedar = { policies: [policy] }
  const rules =
    '; the equivalent "authorization" of a route is {"default":"deny","rules":[{"name":"no-subject","tools":["*"],"prompts":["*"],"resources":["*"],"when":"claims.sub == \\"\\"","effect":"deny"},{"name":"policy-1-unusable-claim","tools":["search"],"when":"claims.team == null","effect":"deny"},{"name":"policy-1","tools":["search"],"when":"claims.team == \\"a\\"","effect":"allow"},{"name":"notifications","methods":["notifications/*","tasks/list"],"effect":"allow"}]}; expected --callers'
  const authz = (inline: object) => remote({ authzConfig: { type: 'inline', inline } })
  const fromMap = remote({ authzConfig: { type: 'configMap', configMap: { name: 'x' } } })
  const map = (name: string, namespace: string, key: string) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace },
    data: { [key]: JSON.stringify({ version: '1.0', type: 'cedarv1', cedar }) },
  })
  const shared = {
    apiVersion: 'toolhive.stacklok.dev/v1beta1',
    kind: 'MCPAuthzConfig',
    metadata: { name: 'x' },
    spec: { type: 'cedarv1', config: cedar },
  }

  test.each([
    ['inline', [authz(cedar)]],
    ['of a ConfigMap', [fromMap, map('x', 'default', 'authz.json')]],
    ['of an MCPAuthzConfig', [remote({ authzConfigRef: { name: 'x' } }), shared]],
  ])('%s is part of the message', (_where, documents) => {
    expect(resolve(documents).problems).toContain(rules)
  })

  test('is part of the warning if something else says who may call', () => {
    expect(resolve([authz(cedar), proxy({ auth: OAUTH })]).warnings).toContain('"name":"policy-1"')
  })

  test.each([
    [{ policies: ['permit(principal, action, resource) unless { true };'] }, 'policy 1, line 1, column 37: "unless"'],
    [{ ...cedar, entitiesJson: '[{}]' }, 'entities are not converted'],
    [{ ...cedar, primaryUpstreamProvider: 'idp' }, 'the primary upstream provider'],
  ])('that does not exist has a reason: %j', (inline, reason) => {
    expect(resolve([authz(inline)]).problems).toContain(`not evaluated here; they cannot be converted: ${reason}`)
  })

  test.each([
    [
      'ConfigMap',
      fromMap,
      [map('y', 'default', 'authz.json'), map('x', 'default', 'other'), map('x', 'n', 'authz.json')],
    ],
    ['MCPAuthzConfig', remote({ authzConfigRef: { name: 'x' } }), []],
  ])('of a %s that is not among the documents names the command', (kind, workloadOf, others) => {
    expect(resolve([workloadOf, ...others]).problems).toContain(
      `; "kubectl get ${kind.toLowerCase()} x -o yaml | extauth convert cedar -" prints the equivalent "authorization"`,
    )
  })

  test('never puts a name that is not one into a command', () => {
    const { problems } = resolve([remote({ authzConfigRef: { name: 'x; rm -rf /' } })])
    expect(problems).toContain('kubectl get mcpauthzconfig NAME -o yaml')
    expect(problems).not.toContain('rm -rf')
  })

  test('is bounded: long rules are left to the command', () => {
    const { problems } = resolve([authz({ policies: Array.from({ length: 60 }, () => policy) })])
    expect(problems).toContain('the equivalent "authorization" of a route is what "extauth convert cedar" prints;')
    expect(problems.length).toBeLessThan(1000)
    const { problems: reason } = resolve([
      authz({ policies: [`permit(principal, action == Action::"${'x'.repeat(5000)}"`] }),
    ])
    expect(reason.length).toBeLessThan(1000)
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
    expect(problems).toContain(`MCPRemoteProxy/w  ${path}  defines callers and `)
    expect(problems).toContain(
      'expected --callers FILE, a ProxyConfig with "auth" among the files, or --ignore-manifest',
    )
  })

  test.each(rows)('%s is a warning where a ProxyConfig says who may call', (path, spec) => {
    const { problems, warnings } = resolve([remote(spec), proxy({ auth: OAUTH })])
    expect(problems).toBe('')
    expect(warnings).toContain(`${path}  defines callers and `)
    expect(warnings).toContain('callers are those of the ProxyConfig at /etc/extauth/2.json:1')
  })

  test.each([...rows, ['spec.oidcConfig', oidc()] as const])('%s is a warning with the options', (path, spec) => {
    const [known] = resolve([proxy({ auth: OAUTH, routes: [route()] })]).routes
    const byOption = resolve([remote(spec)], { callers: known?.callers })
    expect(byOption.problems).toBe('')
    expect(byOption.warnings).toMatch(new RegExp(`${path.replaceAll('.', '\\.')}  .*--callers defines the callers`))
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
