import { describe, expect, test } from 'vitest'
import { resolveProxy } from '../../../../src/load/index.ts'
import { externalAuth, load, OAUTH, proxy, route, SPECS } from '../../../support/load/documents/build.ts'

const ANONYMOUS = { mode: 'anonymous' }

interface Setup {
  readonly spec?: unknown
  readonly auth?: unknown
  readonly address?: string
  readonly more?: object
}

function judge({ spec = SPECS.bearerToken, auth = OAUTH, address = '127.0.0.1:0', more = {} }: Setup): {
  problems: string
  warnings: string
} {
  const document = proxy({ listen: { address }, auth, routes: [route(more)] })
  const result = resolveProxy(load(externalAuth(spec), document))
  return {
    problems: (result.problems ?? []).map((problem) => `${problem.path}  ${problem.message}`).join('\n'),
    warnings: result.config?.warnings.join('\n') ?? '',
  }
}

describe('anonymous callers (decisions §2.1)', () => {
  test.each(['tokenExchange', 'cloudSts'] as const)('get no credential of type %s, whatever the bind', (type) => {
    const setup = { spec: SPECS[type], auth: ANONYMOUS, more: { insecureAllowAnonymous: true } }
    expect(judge(setup).problems).toContain(`type "${type}" needs to know the caller`)
    expect(judge({ ...setup, auth: OAUTH }).problems).toBe('')
  })

  test.each(['127.0.0.1:0', '127.8.9.1:80', 'localhost:1', '[::1]:1', 'unix:/run/a.sock'])(
    'get a static credential on %s',
    (address) => {
      expect(judge({ auth: ANONYMOUS, address }).problems).toBe('')
    },
  )

  test('get the AWS identity of the proxy as a static credential, and no role that it assumes for callers', () => {
    const service = { type: 'cloudSts', cloudSts: { region: 'eu-central-1', source: { type: 'ambient' } } }
    expect(judge({ spec: service, auth: ANONYMOUS }).problems).toBe('')
    const open = { spec: service, auth: ANONYMOUS, address: '0.0.0.0:80' }
    expect(judge(open).problems).toContain('anyone on the network could use this credential')
    expect(judge({ ...open, more: { insecureAllowAnonymous: true } }).problems).toBe('')
    const roles = { ...service.cloudSts, fallbackRoleArn: 'arn:aws:iam::123456789012:role/reader' }
    const assumed = { type: 'cloudSts', cloudSts: roles }
    expect(judge({ spec: assumed, auth: ANONYMOUS }).problems).toContain('type "cloudSts" needs to know the caller')
    expect(judge({ spec: assumed }).problems).toBe('')
  })

  test.each([
    '0.0.0.0:80',
    ':80',
    '*:80',
    '[::]:80',
    '10.0.0.1:80',
    'example.com:80',
    'localhost.example.com:80',
    '127.0.0.1.nip.io:80',
  ])('get none on %s, unless it is said to be meant', (address) => {
    for (const spec of [SPECS.bearerToken, SPECS.headerInjection]) {
      expect(judge({ spec, auth: ANONYMOUS, address }).problems).toContain(
        'anyone on the network could use this credential',
      )
    }
    const meant = judge({ auth: ANONYMOUS, address, more: { insecureAllowAnonymous: true } })
    expect(meant.problems).toBe('')
    expect(meant.warnings).toContain('"insecureAllowAnonymous" is set')
    expect(judge({ spec: SPECS.unauthenticated, auth: ANONYMOUS, address }).problems).toBe('')
  })

  test('a route can be anonymous below a protected default, and the other way round', () => {
    expect(judge({ auth: OAUTH, address: ':80', more: { auth: ANONYMOUS } }).problems).toContain(
      'anyone on the network',
    )
    expect(judge({ auth: ANONYMOUS, address: ':80', more: { auth: OAUTH } }).problems).toBe('')
  })

  test('can not be asked for scopes', () => {
    expect(judge({ auth: ANONYMOUS, more: { requiredScopes: ['a'] } }).problems).toContain(
      'spec.routes[0].requiredScopes',
    )
  })
})

describe('public paths', () => {
  const open = { oauth: { ...OAUTH.oauth, publicPaths: ['/docs'] } }

  test.each(['bearerToken', 'headerInjection', 'tokenExchange', 'cloudSts'] as const)(
    'are refused on a route of type %s',
    (type) => {
      expect(judge({ spec: SPECS[type], auth: open }).problems).toContain(
        '"publicPaths" are only allowed on routes of type "unauthenticated"',
      )
      expect(judge({ spec: SPECS[type], auth: { ...OAUTH, publicPaths: ['/docs'] } }).problems).toContain(
        '"publicPaths"',
      )
    },
  )

  test('are fine where no credential is added', () => {
    expect(judge({ spec: SPECS.unauthenticated, auth: open }).problems).toBe('')
  })
})

describe('the protected resource', () => {
  const two = (auth: unknown, address: string, more: object = {}) => {
    const routes = [route(more), route({ name: 'b', path: '/b' })]
    return resolveProxy(load(externalAuth(SPECS.bearerToken), proxy({ listen: { address }, auth, routes })))
  }

  test('is the URL of the route, else of its own section, else of the section when it is the only route', () => {
    const url = (more: object) => {
      const result = resolveProxy(
        load(
          externalAuth(SPECS.bearerToken),
          proxy({ listen: { address: ':80' }, auth: OAUTH, routes: [route(more)] }),
        ),
      )
      return result.config?.routes[0]?.resourceUrl
    }
    expect(url({ resourceUrl: 'https://a.example.com/x' })).toBe('https://a.example.com/x')
    expect(url({ auth: { oauth: { ...OAUTH.oauth, resourceUrl: 'https://own.example.com' } } })).toBe(
      'https://own.example.com',
    )
    expect(url({})).toBe('https://mcp.example.com')
  })

  test('is required of each of several routes, unless the bind has a loopback URL', () => {
    const { problems } = two(OAUTH, ':80', { resourceUrl: 'https://mcp.example.com/a' })
    expect(problems?.map((problem) => problem.path)).toEqual(
      ['spec.routes[0].resourceUrl', 'spec.routes[1].resourceUrl'].slice(1),
    )
    expect(two(OAUTH, 'unix:/run/p.sock').problems?.map((problem) => problem.path)).toEqual([
      'spec.routes[0].resourceUrl',
      'spec.routes[1].resourceUrl',
    ])
    expect(two(ANONYMOUS, 'unix:/run/p.sock').problems).toBeUndefined()
    expect(two(OAUTH, '127.0.0.1:0').config?.routes.map((each) => each.resourceUrl)).toEqual([undefined, undefined])
    expect(two(ANONYMOUS, '127.0.0.1:0').config?.routes.map((each) => each.resourceUrl)).toEqual([undefined, undefined])
  })
})

describe('plain http (decisions §2.6)', () => {
  const exchange = (tokenUrl: string, more: object = {}) => ({
    type: 'tokenExchange',
    tokenExchange: { tokenUrl, audience: 'a', ...more },
  })
  const providers = (more: object) => ({
    oauth: { ...OAUTH.oauth, providers: [{ ...OAUTH.oauth.providers[0], ...more }] },
  })

  test.each(['http://127.0.0.1:9/t', 'http://localhost/t', 'http://[::1]/t', 'https://idp.example.com/t'])(
    '%s needs no word',
    (url) => {
      expect(judge({ spec: exchange(url) })).toEqual({ problems: '', warnings: '' })
      expect(judge({ auth: providers({ issuerUrl: url, jwksUrl: url, introspectionUrl: url }) })).toEqual({
        problems: '',
        warnings: '',
      })
    },
  )

  test.each(['http://keycloak:8080/t', 'http://idp.auth.svc/t', 'http://idp.auth.svc.cluster.local/t'])(
    '%s is used with a warning',
    (url) => {
      expect(judge({ spec: exchange(url) })).toEqual({
        problems: '',
        warnings: expect.stringContaining('tokenUrl  plain http') as string,
      })
      const { problems, warnings } = judge({ auth: providers({ jwksUrl: url }) })
      expect([problems, warnings]).toEqual(['', expect.stringContaining('providers[0].jwksUrl  plain http')])
    },
  )

  test.each([
    'http://idp.example.com/t',
    'http://10.0.0.1/t',
    'http://svc.example.com/t',
    'http://[fd00::1]/t',
    'http://localhost.example.com/t',
  ])('%s loads, and is only used with insecureAllowHttp', (url) => {
    expect(load(externalAuth(exchange(url))).problems).toEqual([])
    expect(judge({ spec: exchange(url) }).problems).toContain('"tokenUrl": plain http is only used for loopback')
    const clientCredentials = { tokenUrl: url, clientId: 'us', clientSecretRef: { name: 'us', key: 'secret' } }
    const actor = { clientCredentials }
    expect(judge({ spec: exchange('https://idp.example.com/t', { actor }) }).problems).toContain(
      '"actor.clientCredentials.tokenUrl": plain http is only used for loopback',
    )
    expect(judge({ spec: exchange(url, { insecureAllowHttp: true }) }).problems).toBe('')
    expect(judge({ auth: providers({ introspectionUrl: url }) }).problems).toContain(
      'spec.auth.oauth.providers[0].introspectionUrl  plain http',
    )
    expect(judge({ auth: providers({ introspectionUrl: url, insecureAllowHttp: true }) }).problems).toBe('')
  })

  test('a credential that goes to a backend over plain http is a warning', () => {
    expect(judge({ more: { target: 'http://backend.example.com/mcp' } }).warnings).toContain('over plain http')
    expect(judge({ spec: SPECS.unauthenticated, more: { target: 'http://backend.example.com/mcp' } }).warnings).toBe('')
  })
})

test('a role of another partition than its region is a warning', () => {
  const warnings = (region: string, partition: string): string[] =>
    load(
      externalAuth({
        type: 'awsSts',
        awsSts: { region, fallbackRoleArn: `arn:${partition}:iam::123456789012:role/a` },
      }),
    ).warnings.map((warning) => warning.path)
  expect(warnings('eu-central-1', 'aws')).toEqual([])
  expect(warnings('eu-central-1', 'cloud')).toEqual([])
  expect(warnings('cn-north-1', 'aws-cn')).toEqual([])
  expect(warnings('us-gov-west-1', 'cloud-us-gov')).toEqual([])
  expect(warnings('us-isob-east-1', 'aws-iso-b')).toEqual([])
  expect(warnings('eusc-de-east-1', 'aws-eusc')).toEqual([])
  expect(warnings('eusc-de-east-1', 'aws')).toEqual(['spec.awsSts.fallbackRoleArn'])
  expect(warnings('cn-north-1', 'aws')).toEqual(['spec.awsSts.fallbackRoleArn'])
  expect(warnings('eu-central-1', 'aws-us-gov')).toEqual(['spec.awsSts.fallbackRoleArn'])
})

test('a session policy of another partition than the region is a warning', () => {
  const policyArns = ['arn:aws-cn:iam::aws:policy/A', 'arn:aws:iam::aws:policy/B']
  const fallbackRoleArn = 'arn:aws-cn:iam::123456789012:role/a'
  const roleMappings = [{ claim: 'a', roleArn: fallbackRoleArn, policyArns }]
  const awsSts = { region: 'cn-north-1', fallbackRoleArn, policyArns, roleMappings }
  expect(load(externalAuth({ type: 'awsSts', awsSts })).warnings.map(({ path }) => path)).toEqual([
    'spec.awsSts.policyArns[1]',
    'spec.awsSts.roleMappings[0].policyArns[1]',
  ])
})

describe('the audience of tokens that are shown as they came', () => {
  const obo = (clientId: string, more: object = {}) => ({
    type: 'obo',
    obo: {
      tenantId: 'contoso.example',
      clientId,
      clientSecretRef: { name: 'entra', key: 'secret' },
      audience: 'api://backend',
      ...more,
    },
  })
  const auth = (audience: string) => ({
    mode: 'oauth',
    oauth: { ...OAUTH.oauth, providers: [{ name: 'entra', issuerUrl: 'https://login.example', audience }] },
  })
  const WARNING = 'takes only those for the application that shows them'

  test.each([
    ['us', 'us', false],
    ['us', 'api://us', false],
    ['us', 'api://us/more', false],
    ['us', 'them', true],
    ['us', 'https://mcp.example.com', true],
    ['us', 'us2', true],
  ])('client %s, audience %s: a warning %s', (clientId, audience, isWarned) => {
    const { problems, warnings } = judge({ spec: obo(clientId), auth: auth(audience) })
    expect(problems).toBe('')
    expect(warnings.includes(WARNING)).toBe(isWarned)
    if (isWarned) expect(warnings).toContain(`tokens for "${audience}"`)
  })

  test('nothing is said where the token of an upstream is shown', () => {
    const { warnings } = judge({ spec: obo('us', { subjectTokenProviderName: 'entra' }), auth: auth('them') })
    expect(warnings).not.toContain(WARNING)
  })
})
