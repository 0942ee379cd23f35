import { describe, expect, test } from 'vitest'
import { parseDocuments, parseObjects } from '../../../../src/load/index.ts'

const ORIGIN = 'toolhive.stacklok.dev/v1beta1'
const OURS = 'extauth.dev/v1beta1'
const upstream = (name: string) => ({ name, type: 'oidc', oidcConfig: { issuerUrl: 'https://i', clientId: 'c' } })

const documentOf = (apiVersion: string, more: object) => ({
  apiVersion,
  kind: 'MCPExternalAuthConfig',
  metadata: { name: 'login' },
  spec: {
    type: 'embeddedAuthServer',
    embeddedAuthServer: { issuer: 'https://auth.example.com', upstreamProviders: [upstream('corp')], ...more },
  },
})

function loaded(apiVersion: string, more: object) {
  const text = JSON.stringify(documentOf(apiVersion, more))
  const { auths, problems, warnings } = parseDocuments([{ path: 'a.json', text }])
  const spec = auths[0]?.document.spec
  return {
    server: spec?.type === 'embeddedAuthServer' ? spec.embeddedAuthServer : undefined,
    problems: problems.map(({ path, message }) => `${path}  ${message}`).join('\n'),
    warnings: warnings.map(({ path, message }) => `${path}  ${message}`).join('\n'),
  }
}

describe('what is not written', () => {
  const off = { allowConfidentialClientRegistration: false, cimd: { enabled: false } }

  test('means in manifests of the other group what it means there, in a cluster too', () => {
    expect(loaded(ORIGIN, {}).server).toMatchObject(off)
    expect(loaded(ORIGIN, { cimd: { cacheMaxSize: 10 } }).server?.cimd).toEqual({ enabled: false, cacheMaxSize: 10 })
    const [auth] = parseObjects([documentOf(ORIGIN, { cimd: null })], { apiGroup: 'toolhive.stacklok.dev' }).auths
    expect(auth?.document.spec).toMatchObject({ embeddedAuthServer: off })
  })

  test('is open in ours', () => {
    const { server } = loaded(OURS, {})
    expect(server).not.toHaveProperty('cimd')
    expect(server).not.toHaveProperty('allowConfidentialClientRegistration')
  })

  test('is what is written where it is written', () => {
    const on = { allowConfidentialClientRegistration: true, cimd: { enabled: true } }
    expect(loaded(ORIGIN, on).server).toMatchObject(on)
  })

  test('is the same inside of a VirtualMCPServer', () => {
    const { spec } = documentOf(ORIGIN, {})
    const hub = {
      apiVersion: ORIGIN,
      kind: 'VirtualMCPServer',
      metadata: { name: 'hub' },
      spec: { authServerConfig: spec.embeddedAuthServer },
    }
    expect(parseObjects([hub]).workloads[0]?.document.ownAuthServer).toMatchObject(off)
  })
})

describe('secrets of clients over plain http', () => {
  const http = { issuer: 'http://auth.tools.svc', insecureAllowHTTP: true }
  const loopback = { issuer: 'http://localhost:8080' }

  test('are refused where the issuer is elsewhere', () => {
    for (const [group, more] of [
      [OURS, {}],
      [ORIGIN, { allowConfidentialClientRegistration: true }],
    ] as const)
      expect(loaded(group, { ...http, ...more }).problems).toContain(
        'secrets of clients would be given out over plain http',
      )
    expect(loaded(ORIGIN, http).problems).toBe('')
    expect(loaded(OURS, { ...http, allowConfidentialClientRegistration: false }).problems).toBe('')
  })

  test('are given out on this machine only where that is said, in manifests of the other group', () => {
    const on = { ...loopback, allowConfidentialClientRegistration: true }
    expect(loaded(OURS, on).problems).toBe('')
    expect(loaded(ORIGIN, on).problems).toContain('expected "insecureAllowConfidentialOverLoopbackHTTP: true"')
    expect(loaded(ORIGIN, { ...on, insecureAllowConfidentialOverLoopbackHTTP: true }).problems).toBe('')
  })
})

describe('an issuer with plain http', () => {
  test('beyond this machine needs insecureAllowHTTP, and is warned of', () => {
    const more = { issuer: 'http://auth.tools.svc', allowConfidentialClientRegistration: false }
    expect(loaded(OURS, more).problems).toContain('expected https')
    expect(loaded(OURS, { ...more, insecureAllowHTTP: false }).problems).toContain('expected https')
    const { problems, warnings } = loaded(OURS, { ...more, insecureAllowHTTP: true })
    expect(problems).toBe('')
    expect(warnings).toContain('spec.embeddedAuthServer.issuer  plain http beyond this machine (insecureAllowHTTP)')
  })

  test('is held to the rest of the rules', () => {
    const more = { insecureAllowHTTP: true, allowConfidentialClientRegistration: false }
    for (const issuer of [
      'http://user@auth.tools.svc',
      'http://auth.tools.svc/',
      'http://auth.tools.svc?x',
      'ftp://a.svc',
    ])
      expect(loaded(OURS, { ...more, issuer }).problems).not.toBe('')
  })
})

describe('forceConfidentialRedirectUris', () => {
  const uris = { forceConfidentialRedirectUris: ['https://client.example.com/cb'] }

  test('need confidential clients', () => {
    expect(loaded(OURS, uris).problems).toBe('')
    expect(loaded(ORIGIN, uris).problems).toContain('needs "allowConfidentialClientRegistration"')
    expect(loaded(OURS, { ...uris, allowConfidentialClientRegistration: false }).problems).toContain('needs "allow')
  })

  test.each(['https://localhost/cb', 'https://127.0.0.1:8443/cb', 'https://[::1]/cb'])(
    'are not on this machine: %s',
    (uri) => {
      expect(loaded(OURS, { forceConfidentialRedirectUris: [uri] }).problems).toContain('expected URLs of other hosts')
    },
  )
})

test('primaryUpstreamProvider is one of the providers', () => {
  expect(loaded(OURS, { primaryUpstreamProvider: 'corp' }).problems).toBe('')
  expect(loaded(OURS, { primaryUpstreamProvider: 'hub' }).problems).toContain(
    'expected the name of one of "upstreamProviders"',
  )
})

test.each([
  ['', 'too short'],
  ['user|id', 'expected a dot path'],
  ['user.#.id', 'expected a dot path'],
  ['@this', 'expected a dot path'],
  ['access_token|@upstreamjwt', 'expected a dot path'],
  ['a|@upstreamjwt|b|@upstreamjwt|c', 'expected a dot path'],
])('an unsupported identity path is rejected: %s', (subjectPath, message) => {
  const oauth2Config = {
    authorizationEndpoint: 'https://a.example.com/authorize',
    tokenEndpoint: 'https://a.example.com/token',
    clientId: 'c',
    identityFromToken: { subjectPath },
  }
  const upstreamProviders = [{ name: 'a', type: 'oauth2', oauth2Config }]
  expect(loaded(OURS, { upstreamProviders }).problems).toContain(message)
})
