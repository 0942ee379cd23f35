import { describe, expect, test } from 'vitest'
import { renderProblem, resolveProxy, type ProxyOverrides } from '../../../../src/load/index.ts'
import { externalAuth, load, OAUTH, proxy, SPECS, workload } from '../../../support/load/documents/build.ts'

const token = externalAuth(SPECS.bearerToken)
const inline = {
  issuer: 'https://idp.example.com',
  audienceClaim: 'client_id',
  jwksUrl: 'https://idp.example.com/keys',
  introspectionUrl: 'https://idp.example.com/introspect',
  clientId: 'proxy',
  clientSecretRef: { name: 'oidc', key: 'secret' },
  caBundleRef: { configMapRef: { name: 'ca', key: 'ca.crt', optional: false } },
  jwksAuthTokenPath: 'token',
  jwksAllowPrivateIP: true,
  protectedResourceAllowPrivateIP: false,
  insecureAllowHTTP: false,
}
const config = (spec: object = { type: 'inline', inline }, name = 'corp', namespace?: string) =>
  workload('MCPOIDCConfig', name, spec, namespace)
const cluster = (of: object = {}) => config({ type: 'kubernetesServiceAccount', kubernetesServiceAccount: of })
const ref = { name: 'corp', audience: 'mcp' }
const remote = (spec: object) =>
  workload('MCPRemoteProxy', 'w', {
    remoteUrl: 'https://backend.example.com/mcp',
    externalAuthConfigRef: { name: 'token' },
    ...spec,
  })

function resolve(documents: readonly object[], overrides: ProxyOverrides = {}) {
  const loaded = load(token, ...documents)
  const { config: resolved, problems } = resolveProxy(loaded, overrides)
  return {
    problems: (problems ?? []).map(renderProblem).join('\n'),
    warnings: (resolved?.warnings ?? []).join('\n'),
    route: resolved?.routes[0],
  }
}
function providersOf(...documents: readonly object[]): readonly object[] {
  const { problems, route } = resolve(documents, { secretsDirectory: '/run/s' })
  expect(problems).toBe('')
  return route?.callers.mode === 'oauth' ? route.callers.oauth.providers : []
}

describe('an MCPOIDCConfig says who may call the workloads that refer to it', () => {
  test('as one OpenID provider, with the audience, the scopes and the resource of the reference', () => {
    const oidcConfigRef = { ...ref, scopes: ['read'], resourceUrl: 'https://mcp.example.com/w' }
    const { route } = resolve([config(), remote({ oidcConfigRef })])
    expect(route).toMatchObject({
      resourceUrl: 'https://mcp.example.com/w',
      callers: { mode: 'oauth', oauth: { scopesSupported: ['read'], resourceUrl: 'https://mcp.example.com/w' } },
    })
    expect(providersOf(config(), remote({ oidcConfigRef }))).toEqual([
      {
        name: 'corp',
        issuerUrl: 'https://idp.example.com',
        audience: 'mcp',
        jwksUrl: 'https://idp.example.com/keys',
        introspectionUrl: 'https://idp.example.com/introspect',
        clientId: 'proxy',
        clientSecretFile: '/run/s/oidc/secret',
        caCertPath: '/run/s/ca/ca.crt',
        // Beside the document that names it.
        authTokenFile: '/etc/extauth/token',
        audienceClaim: 'client_id',
        allowPrivateIP: true,
        insecureAllowHttp: false,
      },
    ])
  })

  test('with the secrets and files that it names, where a route uses it', () => {
    const unused = config(
      {
        type: 'inline',
        inline: { ...inline, clientSecretRef: { name: 'unused', key: 'a' }, jwksAuthTokenPath: 'other' },
      },
      'b',
    )
    const { config: resolved } = resolveProxy(load(token, config(), unused, remote({ oidcConfigRef: ref })))
    const labels = resolved?.places.secrets.map(({ label }) => label)
    expect(labels).toEqual(expect.arrayContaining(['oidc/secret', 'ca/ca.crt']))
    expect(labels).not.toContain('unused/a')
    expect(resolved?.places.files.map(({ path }) => path)).toEqual(['/etc/extauth/token'])
  })

  test('exactly as an oidcConfig of the workload that says the same', () => {
    const own = remote({ oidcConfig: { type: 'inline', inline: { ...inline, audience: 'mcp' } } })
    const rename = (providers: readonly object[]) => providers.map((one) => Object.assign({}, one, { name: '' }))
    expect(rename(providersOf(config(), remote({ oidcConfigRef: ref })))).toEqual(rename(providersOf(own)))
    const service = { serviceAccount: 'agent', namespace: 'agents' }
    const ownCluster = remote({ oidcConfig: { kubernetes: { ...service, audience: 'mcp' } } })
    expect(rename(providersOf(cluster(service), remote({ oidcConfigRef: ref })))).toEqual(
      rename(providersOf(ownCluster)),
    )
  })

  test('service accounts of the cluster by its API server; one alone where it is named', () => {
    expect(providersOf(cluster(), remote({ oidcConfigRef: ref }))).toMatchObject([
      { issuerUrl: 'https://kubernetes.default.svc', audience: 'mcp', allowPrivateIP: true },
    ])
    expect(providersOf(cluster({ serviceAccount: 'agent' }), remote({ oidcConfigRef: ref }))).toMatchObject([
      { subject: 'system:serviceaccount:default:agent' },
    ])
  })

  test('also of a VirtualMCPServer, below incomingAuth', () => {
    const virtual = {
      ...workload('VirtualMCPServer', 'v', {
        incomingAuth: { type: 'oidc', oidcConfigRef: { ...ref, resourceUrl: 'https://mcp.example.com' } },
        outgoingAuth: { default: { type: 'externalAuthConfigRef', externalAuthConfigRef: { name: 'token' } } },
      }),
      status: { discoveredBackends: [{ name: 'b', url: 'https://b.example.com/mcp' }] },
    }
    expect(providersOf(config(), virtual)).toMatchObject([{ name: 'corp', audience: 'mcp' }])
  })
})

describe('conflicts are reported', () => {
  test.each<readonly [string, readonly object[], string]>([
    [
      'one that is not there',
      [remote({ oidcConfigRef: ref })],
      'spec.oidcConfigRef.name  there is no MCPOIDCConfig "corp" in namespace "default"',
    ],
    [
      'a name that is nearly right',
      [config(undefined, 'corps'), remote({ oidcConfigRef: ref })],
      'did you mean "corps"?',
    ],
    [
      'one of another namespace',
      [config(undefined, 'corp', 'other'), remote({ oidcConfigRef: ref })],
      'is in namespace "other", expected the namespace of the reference',
    ],
    [
      'one of an MCPServer that is not there',
      [workload('MCPServer', 's', { image: 'x', oidcConfigRef: ref })],
      'spec.oidcConfigRef.name  there is no MCPOIDCConfig "corp"',
    ],
    ['no audience', [config(), remote({ oidcConfigRef: { name: 'corp' } })], 'spec.oidcConfigRef.audience  missing'],
    [
      'a field of the reference that restricts callers, perhaps',
      [config(), remote({ oidcConfigRef: { ...ref, groups: ['a'] } })],
      'spec.oidcConfigRef.groups  defines callers and is not supported',
    ],
    [
      'a reference beside a section',
      [config(), remote({ oidcConfigRef: ref, oidcConfig: { type: 'inline', inline } })],
      '"oidcConfig" and "oidcConfigRef" are mutually exclusive',
    ],
    [
      'a reference beside auth',
      [config(), remote({ oidcConfigRef: ref, auth: { mode: 'anonymous' } })],
      '"auth" and "oidcConfigRef" are mutually exclusive',
    ],
    ['a type without its object', [config({ type: 'inline' })], 'missing, "inline" is required when type is "inline"'],
    [
      'the object of another type',
      [config({ type: 'kubernetesServiceAccount', inline, kubernetesServiceAccount: {} })],
      '"inline" must be absent when type is "kubernetesServiceAccount"',
    ],
    [
      'a field that is not known',
      [config({ type: 'inline', inline: { ...inline, requiredGroups: [] } })],
      'unknown field "requiredGroups"',
    ],
    [
      'plain http',
      [config({ type: 'inline', inline: { issuer: 'http://idp.example.com' } })],
      'spec.inline.issuer  plain http is only used for loopback',
    ],
    [
      'a namespace that restricts no caller',
      [cluster({ namespace: 'agents' })],
      'spec.kubernetesServiceAccount.namespace  "namespace" needs "serviceAccount" as well',
    ],
    ['two of one name', [config(), config()], 'there is already a MCPOIDCConfig "corp"'],
  ])('%s', (_what, documents, problem) => {
    expect(resolve(documents).problems).toContain(problem)
  })

  test('an invalid one is reported once, and accepts no caller', () => {
    const broken = config({ type: 'inline', inline: { issuer: 'no URL' } })
    const { problems, route } = resolve([broken, remote({ oidcConfigRef: ref }), proxy({ auth: OAUTH })])
    expect(problems.split('\n')).toHaveLength(1)
    expect(problems).toContain('MCPOIDCConfig/corp  spec.inline.issuer')
    expect(route).toBeUndefined()
  })

  test('it may be missing if --callers sets the callers', () => {
    const [known] = [resolve([config(), remote({ oidcConfigRef: ref })]).route]
    const byOption = resolve([remote({ oidcConfigRef: ref })], { callers: known?.callers })
    expect(byOption.problems).toBe('')
    expect(byOption.warnings).toContain('spec.oidcConfigRef  not honoured: --callers defines the callers')
    const ignored = resolve([remote({ oidcConfigRef: ref })], { ignoreManifestCallers: true })
    expect(ignored.warnings).toContain('spec.oidcConfigRef  not honoured: --ignore-manifest-callers is given')
    // The manifest's own word comes before that of a ProxyConfig.
    expect(resolve([remote({ oidcConfigRef: ref }), proxy({ auth: OAUTH })]).problems).toContain(
      'there is no MCPOIDCConfig',
    )
  })
})
