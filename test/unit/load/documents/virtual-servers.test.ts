import { describe, expect, test } from 'vitest'
import { renderProblem, resolveProxy } from '../../../../src/load/index.ts'
import { externalAuth, load, SPECS, workload } from '../../../support/load/documents/build.ts'

const [bearer, header, open] = [
  externalAuth(SPECS.bearerToken, 'bearer'),
  externalAuth(SPECS.headerInjection, 'header'),
  externalAuth(SPECS.unauthenticated, 'open'),
]
const byRef = (name: string) => ({ type: 'externalAuthConfigRef', externalAuthConfigRef: { name } })

function virtual(spec: object, ...discoveredBackends: readonly object[]) {
  const manifest = { ...workload('VirtualMCPServer', 'hub', spec), status: { discoveredBackends } }
  const { config, problems } = resolveProxy(load(bearer, header, open, manifest))
  return {
    problems: (problems ?? []).map(renderProblem).join('\n'),
    config,
    routes: config?.routes.map(({ name, path, target, auth }) => [name, path, target.origin, auth.type]),
  }
}
const backend = (name: string, more: object = {}) => ({ name, url: `https://${name}.example.com`, ...more })

describe('a VirtualMCPServer (authserver.md §2.4)', () => {
  test('is one route for each discovered backend with a URL', () => {
    expect(virtual({}, backend('a'), { name: 'b' }, backend('c', { url: '' })).routes).toEqual([
      ['a', '/a', 'https://a.example.com', 'unauthenticated'],
    ])
  })

  test('reaches a backend by its own entry, by what was discovered, by the default, in this order', () => {
    const outgoingAuth = { default: byRef('header'), backends: { a: byRef('open'), c: { type: 'discovered' } } }
    const backends = [
      backend('a', { authConfigRef: 'bearer' }),
      backend('b', { authConfigRef: 'bearer' }),
      backend('c', { authConfigRef: { name: 'bearer' } }),
      backend('d', { authConfigRef: '' }),
    ]
    expect(virtual({ outgoingAuth }, ...backends).routes?.map(([name, , , type]) => [name, type])).toEqual([
      ['a', 'unauthenticated'],
      ['b', 'bearerToken'],
      ['c', 'bearerToken'],
      ['d', 'headerInjection'],
    ])
  })

  test.each([
    [
      { outgoingAuth: { backends: { a: byRef('nobody') } } },
      [],
      'spec.outgoingAuth.backends.a.externalAuthConfigRef.name',
    ],
    [{ outgoingAuth: { default: byRef('nobody') } }, [], 'spec.outgoingAuth.default.externalAuthConfigRef.name'],
    [{}, [backend('a', { authConfigRef: 'nobody' })], 'status.discoveredBackends[0].authConfigRef'],
    [{}, [backend('a', { authConfigRef: { name: 'nobody' } })], 'status.discoveredBackends[0].authConfigRef.name'],
  ])('%j: a dangling reference is reported with its location', (spec, backends, path) => {
    expect(virtual(spec, ...backends).problems).toContain(`${path}  there is no MCPExternalAuthConfig "nobody"`)
  })

  test.each([
    [backend('a/b'), 'status.discoveredBackends[0].name  expected letters'],
    [backend('a', { url: 'ftp://a' }), 'status.discoveredBackends[0].url'],
  ])('refuses %j', (entry, problem) => {
    expect(virtual({}, entry).problems).toContain(problem)
  })

  test('can hold its authorization server', () => {
    const provider = { name: 'corp', type: 'oidc', oidcConfig: { issuerUrl: 'https://corp', clientId: 'c' } }
    const authServerConfig = {
      issuer: 'https://mcp.example.com',
      upstreamProviders: [provider, { ...provider, name: 'b' }],
    }
    const spec = {
      authServerConfig,
      resourceUrl: 'https://mcp.example.com/hub/',
      outgoingAuth: { default: byRef('bearer') },
    }
    const { config, problems } = virtual(spec, backend('a'), backend('b'))
    expect(problems).toBe('')
    expect(config?.authServers).toMatchObject([
      { name: 'default/VirtualMCPServer/hub', spec: { issuer: 'https://mcp.example.com' } },
    ])
    expect(config?.routes.map(({ resourceUrl, authServer }) => [resourceUrl, authServer?.server])).toEqual([
      ['https://mcp.example.com/hub/a', config?.authServers[0]],
      ['https://mcp.example.com/hub/b', config?.authServers[0]],
    ])
    expect(config?.warnings.join('\n')).toContain('spec.authServerConfig.hmacSecretRefs  not set')
  })

  test('an error in its authorization server is reported with its location', () => {
    const authServerConfig = { issuer: 'https://mcp.example.com', upstreamProviders: [{ name: 'corp', typ: 'oidc' }] }
    const { problems } = virtual({ authServerConfig }, backend('a'))
    expect(problems).toContain(
      'spec.authServerConfig.upstreamProviders[0].typ  unknown field "typ", did you mean "type"?',
    )
  })

  test('without a backend that has a URL there is nothing to serve', () => {
    expect(virtual({}).problems).toContain('a VirtualMCPServer with discovered backends')
  })
})
