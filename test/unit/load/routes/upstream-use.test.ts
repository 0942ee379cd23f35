import { describe, expect, test } from 'vitest'
import { renderProblem, resolveProxy } from '../../../../src/load/index.ts'
import { externalAuth, load, proxy, route, SPECS } from '../../../support/load/documents/build.ts'

const upstream = (name: string) => ({ name, type: 'oidc', oidcConfig: { issuerUrl: `https://${name}`, clientId: 'c' } })
const server = (more: object = {}) =>
  externalAuth(
    {
      type: 'embeddedAuthServer',
      embeddedAuthServer: {
        issuer: 'https://mcp.example.com',
        upstreamProviders: [upstream('corp'), upstream('github')],
        ...more,
      },
    },
    'server',
  )
const exchange = (more: object = {}) =>
  externalAuth({ type: 'tokenExchange', tokenExchange: { ...SPECS.tokenExchange.tokenExchange, ...more } })
const login = { authServerRef: { kind: 'MCPExternalAuthConfig', name: 'server' } }
const at = (more: object = {}) => route({ resourceUrl: 'https://mcp.example.com/a', ...more })
const token = externalAuth(SPECS.bearerToken)

function first(documents: readonly object[]) {
  const { config, problems = [] } = resolveProxy(load(...documents))
  const [only] = config?.routes ?? []
  if (only === undefined) throw new Error(problems.map(renderProblem).join('\n'))
  return only
}
const problemsOf = (...documents: readonly object[]): string =>
  (resolveProxy(load(...documents)).problems ?? []).map(renderProblem).join('\n')

describe('disableUpstreamTokenInjection', () => {
  const off = server({ disableUpstreamTokenInjection: true })
  const both = { ...login, routes: [at({ externalAuthConfigRef: { name: 'server' } })] }

  test('callers log in, and the backend gets nothing', () => {
    expect(first([server(), proxy(both)]).auth.type).toBe('upstreamInject')
    const { auth, authServer } = first([off, proxy(both)])
    expect([auth.type, authServer?.server.name, authServer?.providers]).toEqual([
      'unauthenticated',
      'default/server',
      ['corp'],
    ])
  })

  test('a static credential beside it is sent', () => {
    expect(first([off, token, proxy({ ...login, routes: [at()] })]).auth.type).toBe('bearerToken')
  })

  test.each([
    externalAuth({ type: 'upstreamInject', upstreamInject: { providerName: 'corp' } }),
    exchange(),
    exchange({ subjectProviderName: 'corp' }),
    externalAuth(SPECS.cloudSts),
  ])('a route that would send what comes of a login is refused', (auth) => {
    expect(problemsOf(off, auth, proxy({ ...login, routes: [at()] }))).toContain(
      'has "disableUpstreamTokenInjection"; expected one of the two',
    )
  })
})

describe('primaryUpstreamProvider', () => {
  const primary = server({ primaryUpstreamProvider: 'github' })

  test('is visited first; the default of tokens stays the first that is written', () => {
    const { auth, authServer } = first([primary, exchange(), proxy({ ...login, routes: [at()] })])
    expect(auth.upstream?.provider).toBe('corp')
    expect(authServer?.providers).toEqual(['github', 'corp'])
    expect(first([primary, token, proxy({ ...login, routes: [at()] })]).authServer?.providers).toEqual(['github'])
  })
})
