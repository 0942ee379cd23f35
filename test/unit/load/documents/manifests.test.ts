import { describe, expect, test } from 'vitest'
import { renderProblem, resolveProxy, splitExternalAuth, type ProxyOverrides } from '../../../../src/load/index.ts'
import { externalAuth, load, OAUTH, proxy, route, SPECS, workload } from '../../../support/load/documents/build.ts'

const remote = (name: string, spec: object = {}, kind = 'MCPRemoteProxy') =>
  workload(kind, name, { remoteUrl: 'https://backend.example.com/mcp?x=1', ...spec })
const token = externalAuth(SPECS.bearerToken)
const reference = { externalAuthConfigRef: { name: 'token' } }

function judge(documents: readonly object[], overrides: ProxyOverrides = {}) {
  const { config, problems } = resolveProxy(load(...documents), overrides)
  return {
    problems: (problems ?? []).map(renderProblem).join('\n'),
    address: config?.listen.address,
    routes: config?.routes.map(({ name, path, exactTarget, auth, callers, resourceUrl }) => ({
      name,
      path,
      exactTarget,
      type: auth.type,
      mode: callers.mode,
      resourceUrl,
    })),
  }
}

describe('manifests as routes (decisions §7)', () => {
  test('one gets the prefix /, with anonymous callers on loopback', () => {
    expect(judge([token, remote('weather', reference)])).toEqual({
      problems: '',
      address: '127.0.0.1:8080',
      routes: [
        {
          name: 'weather',
          path: '/',
          exactTarget: true,
          type: 'bearerToken',
          mode: 'anonymous',
          resourceUrl: undefined,
        },
      ],
    })
  })

  test('several get /<name>; exactly the path of the target is sent where it has one', () => {
    const { routes } = judge([
      token,
      remote('a', reference),
      remote('b', { remoteUrl: undefined, remoteURL: 'https://b.example.com' }, 'MCPServerEntry'),
    ])
    expect(routes?.map(({ path, exactTarget, type }) => [path, exactTarget, type])).toEqual([
      ['/a', true, 'bearerToken'],
      ['/b', false, 'unauthenticated'],
    ])
  })

  test('MCPServer and VirtualMCPServer are no routes', () => {
    expect(
      judge([
        token,
        remote('a', reference),
        workload('MCPServer', 'b', { ...reference, image: 'x' }),
        workload('VirtualMCPServer', 'c', {}),
      ]).routes,
    ).toHaveLength(1)
  })

  test('callers come from a ProxyConfig among the files, or from --callers', () => {
    const listen = { address: '0.0.0.0:80' }
    expect(judge([token, remote('a', reference), proxy({ listen, auth: OAUTH })]).routes).toEqual([
      {
        name: 'a',
        path: '/',
        exactTarget: true,
        type: 'bearerToken',
        mode: 'oauth',
        resourceUrl: 'https://mcp.example.com',
      },
    ])
    const { config } = resolveProxy(load(token, proxy({ auth: OAUTH, routes: [route()] })))
    const callers = config?.routes[0]?.callers
    expect(
      judge([token, remote('a', reference), remote('b', reference)], { callers, listen: ':80' }).routes?.map((each) => [
        each.mode,
        each.resourceUrl,
      ]),
    ).toEqual([
      ['oauth', 'https://mcp.example.com/a'],
      ['oauth', 'https://mcp.example.com/b'],
    ])
  })

  test('without callers the bind must be loopback', () => {
    expect(judge([token, remote('a', reference)], { listen: ':80' }).problems).toContain(
      'anyone on the network could use this credential',
    )
  })

  test('--listen beats spec.port, and two ports need it', () => {
    expect(judge([token, remote('a', { ...reference, port: 9000 })]).address).toBe('127.0.0.1:9000')
    expect(judge([token, remote('a', { ...reference, port: 9000 })], { listen: 'localhost:1' }).address).toBe(
      'localhost:1',
    )
    const two = [token, remote('a', { port: 1 }), remote('b', { port: 2 })]
    expect(judge(two).problems).toContain(
      'MCPRemoteProxy/b  spec.port  the manifests set different ports (1, 2), expected --listen',
    )
    expect(judge(two, { listen: 'localhost:1' }).problems).toBe('')
  })

  test('routes of manifests and of a ProxyConfig must not meet', () => {
    const own = proxy({ auth: OAUTH, routes: [route({ path: '/b' }), route({ name: 'x', path: '/x' })] })
    const { problems } = judge([token, own, remote('a', reference), remote('b', reference)])
    expect(problems).toContain(
      'MCPRemoteProxy/a  metadata.name  the route of this manifest has the name "a", which another route has (/etc/extauth/1.json:1)',
    )
    expect(problems).toContain('MCPRemoteProxy/b  metadata.name  the route of this manifest has the path "/b"')
  })
})

describe('the short form', () => {
  const target = 'https://backend.example.com/mcp'

  test('is one route with the only config of the file', () => {
    expect(judge([token], { target })).toEqual({
      problems: '',
      address: '127.0.0.1:8080',
      routes: [
        { name: 'token', path: '/', exactTarget: true, type: 'bearerToken', mode: 'anonymous', resourceUrl: undefined },
      ],
    })
  })

  test('or with the one that is named', () => {
    const documents = [token, externalAuth(SPECS.headerInjection, 'other')]
    expect(judge(documents, { target, externalAuth: 'other' }).routes?.[0]?.type).toBe('headerInjection')
    expect(judge(documents, { target }).problems).toContain(
      '--external-auth  expected FILE#name with one of token, other',
    )
    expect(judge(documents, { target, externalAuth: 'x' }).problems).toContain('with one of token, other')
    expect(judge([proxy({ auth: OAUTH })], { target }).problems).toContain('the file has no MCPExternalAuthConfig')
  })

  test('follows the rules of every route', () => {
    expect(judge([externalAuth(SPECS.cloudSts)], { target }).problems).toContain(
      'type "cloudSts" needs to know the caller',
    )
    expect(judge([externalAuth(SPECS.upstreamInject)], { target }).problems).toContain('expected an "authServerRef"')
    expect(judge([token], { target: 'backend' }).problems).toContain('--target  expected an http or https URL')
    expect(judge([token], { target, listen: ':80' }).problems).toContain('anyone on the network')
  })

  test.each([
    ['a.yaml', 'a.yaml', undefined],
    ['dir/a.yaml#token', 'dir/a.yaml', 'token'],
    ['a#b.yaml#c', 'a#b.yaml', 'c'],
  ])('reads %s', (option, file, name) => {
    expect(splitExternalAuth(option)).toEqual({ file, name })
  })
})
