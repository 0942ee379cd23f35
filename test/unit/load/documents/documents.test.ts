import { describe, expect, test } from 'vitest'
import { parseDocuments, parseObjects, renderProblem } from '../../../../src/load/index.ts'
import { jsonSchemaAccepts } from '../../../support/load/publish/validators.ts'
import { externalAuth, load, OAUTH, proxy, route, SPECS, workload } from '../../../support/load/documents/build.ts'

const texts = (loaded: ReturnType<typeof load>): string[] => loaded.problems.map(renderProblem)
const auth = (more: object): object => ({ ...externalAuth(SPECS.bearerToken), ...more })

describe('whose a document is', () => {
  test.each(['extauth.dev/v1alpha1', 'toolhive.stacklok.dev/v1alpha1', 'toolhive.stacklok.dev/v1beta1'])(
    '%s loads',
    (apiVersion) => {
      const loaded = load(auth({ apiVersion }))
      expect(texts(loaded)).toEqual([])
      expect(loaded.auths).toHaveLength(1)
    },
  )

  test('the group can be another one', () => {
    const text = JSON.stringify(auth({ apiVersion: 'auth.example.com/v1alpha1' }))
    const files = [{ path: 'a.json', text }]
    expect(parseDocuments(files, { apiGroup: 'auth.example.com' }).auths).toHaveLength(1)
    const other = parseDocuments(files)
    expect(other.auths).toHaveLength(0)
    expect(other.warnings.map((warning) => warning.message)).toEqual([
      'skipped, "MCPExternalAuthConfig" of the group "auth.example.com" is not supported, expected "extauth.dev/v1beta1"',
    ])
  })

  test.each(['extauth.dev', 'auth.example.com', 'toolhive.stacklok.dev'])(
    'both versions of %s say the same',
    (group) => {
      const [older, newer] = ['v1alpha1', 'v1beta1'].map((version) => {
        const file = { path: 'a.json', text: JSON.stringify(auth({ apiVersion: `${group}/${version}` })) }
        return parseDocuments([file], { apiGroup: 'auth.example.com' })
      })
      expect(older?.problems).toEqual([])
      expect(newer?.problems).toEqual([])
      expect(newer?.auths[0]?.configHash).toBe(older?.auths[0]?.configHash)
    },
  )

  test('documents of others are skipped and counted', () => {
    const loaded = load(
      { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a' } },
      { apiVersion: 'apps/v1', kind: 'Deployment' },
      { apiVersion: 'toolhive.stacklok.dev/v1beta1', kind: 'MCPRegistry' },
      { servers: [] },
    )
    expect(texts(loaded)).toEqual([])
    expect(loaded.skipped.map((item) => item.kind)).toEqual(['Secret', 'Deployment', 'MCPRegistry', ''])
  })

  test.each([
    [
      { apiVersion: 'extauth.dev/v1' },
      'apiVersion  unknown version, expected "extauth.dev/v1alpha1" or "extauth.dev/v1beta1"',
    ],
    [
      { apiVersion: 'toolhive.stacklok.dev/v2' },
      'expected "toolhive.stacklok.dev/v1alpha1" or "toolhive.stacklok.dev/v1beta1"',
    ],
    [{ apiVersion: undefined }, 'apiVersion  missing, expected "extauth.dev/v1beta1"'],
    [{ apiVersion: 'v1alpha1' }, 'apiVersion  has no group, expected "extauth.dev/v1beta1"'],
    [{ apiVersion: '' }, 'apiVersion  has no group, expected "extauth.dev/v1beta1"'],
    [{ apiVersion: '/v1alpha1' }, 'apiVersion  has no group, expected "extauth.dev/v1beta1"'],
    [{ apiVersion: 'extauht.dev/v1alpha1' }, 'the group "extauht.dev" is not known, did you mean "extauth.dev"?'],
    [{ apiVersion: 'toolhive.stacklock.dev/v1beta1' }, 'did you mean "toolhive.stacklok.dev"?'],
    [{ kind: undefined }, 'kind  missing, expected one of MCPExternalAuthConfig'],
    [{ kind: 'MCPExternalAuthConfg' }, 'did you mean "MCPExternalAuthConfig"?'],
    [{ kind: 'ProxyConfigs', apiVersion: 'toolhive.stacklok.dev/v1beta1' }, 'did you mean "ProxyConfig"?'],
    [{ kind: 'Something' }, '"Something" is not known, expected one of'],
    [{ metadata: {} }, 'metadata.name  missing'],
    [{ metadata: { name: 'a', namspace: 'b' } }, 'did you mean "namespace"'],
    [{ extra: 1 }, 'unknown field "extra"'],
  ])('%j is a problem', (change, problem) => {
    expect(texts(load(auth(change))).join('\n')).toContain(problem)
  })

  test('a problem is one line that steers no terminal, whatever the document holds', () => {
    const text = texts(load(auth({ metadata: { name: 'a\n::error::\u001b[2J\u202e' } }))).join('')
    expect(text).toContain('MCPExternalAuthConfig/a\\u{a}::error::\\u{1b}[2J\\u{202e}  metadata.name')
    expect(text).not.toMatch(/[\p{Cc}\p{Cf}]/u)
    expect(texts(load(auth({ metadata: { name: 'x'.repeat(5_000) } })))[0]?.length).toBeLessThan(600)
  })

  test('what a cluster exports loads: its metadata, its status, and lists', () => {
    const exported = auth({
      metadata: {
        name: 'token',
        namespace: 'prod',
        uid: 'x',
        resourceVersion: '1',
        generation: 2,
        creationTimestamp: '2026-01-01T00:00:00Z',
        labels: { a: 'b' },
        annotations: {},
        managedFields: [
          { manager: 'kubectl', operation: 'Update', apiVersion: 'extauth.dev/v1alpha1', fieldsType: 'FieldsV1' },
        ],
        ownerReferences: [],
        finalizers: [],
      },
      status: {
        configHash: '0123456789abcdef',
        observedGeneration: 2,
        conditions: [
          {
            type: 'extauth.dev/Ready',
            status: 'True',
            lastTransitionTime: '2026-01-01T00:00:00Z',
            reason: 'Valid',
            message: '',
          },
        ],
        referencingWorkloads: [{ kind: 'MCPServer', name: 'a' }],
      },
    })
    const loaded = load({
      apiVersion: 'v1',
      kind: 'List',
      items: [exported, auth({ metadata: { name: 'b' }, spec: { type: 'x' } })],
    })
    expect(loaded.auths.map((item) => item.document.metadata)).toEqual([{ name: 'token', namespace: 'prod' }])
    expect(texts(loaded)).toEqual([
      expect.stringContaining('MCPExternalAuthConfig/b  items[1].spec.type  "x" is not known'),
    ])
  })

  test.each([
    [
      { conditions: [{ type: 'Ready', status: 'Yes', lastTransitionTime: 'now', reason: '1', message: 'a' }] },
      ['status.conditions[0].status', 'status.conditions[0].lastTransitionTime', 'status.conditions[0].reason'],
    ],
    [
      { referencingWorkloads: [{ kind: 'Pod', name: '' }] },
      ['status.referencingWorkloads[0].kind', 'status.referencingWorkloads[0].name'],
    ],
  ])('the status is checked too: %j', (status, paths) => {
    expect(load(auth({ status })).problems.map((problem) => problem.path)).toEqual(paths)
  })
})

describe('documents among each other', () => {
  test('the same kind, namespace and name twice is a problem that names both places', () => {
    const loaded = load(
      auth({}),
      auth({}),
      externalAuth(SPECS.bearerToken, 'token', 'other'),
      proxy({ auth: OAUTH }, 'token'),
    )
    expect(texts(loaded)).toEqual([
      '/etc/extauth/1.json:1:88  MCPExternalAuthConfig/token  metadata.name  there is already a MCPExternalAuthConfig "token" in namespace "default" at /etc/extauth/0.json:1',
    ])
  })

  test.each([
    ['ProxyConfig', proxy({ auth: OAUTH, routes: [route()] }), 'spec.routes[0].externalAuthConfigRef.name'],
    [
      'MCPServer',
      workload('MCPServer', 'w', { externalAuthConfigRef: { name: 'token' } }),
      'spec.externalAuthConfigRef.name',
    ],
    [
      'MCPServer',
      workload('MCPServer', 'w', { authServerRef: { kind: 'MCPExternalAuthConfig', name: 'token' } }),
      'spec.authServerRef.name',
    ],
    [
      'MCPRemoteProxy',
      workload('MCPRemoteProxy', 'w', { remoteUrl: 'https://a', externalAuthConfigRef: { name: 'token' } }),
      'spec.externalAuthConfigRef.name',
    ],
    [
      'MCPServerEntry',
      workload('MCPServerEntry', 'w', { remoteUrl: 'https://a', externalAuthConfigRef: { name: 'token' } }),
      'spec.externalAuthConfigRef.name',
    ],
    [
      'VirtualMCPServer',
      workload('VirtualMCPServer', 'w', { outgoingAuth: { default: { externalAuthConfigRef: { name: 'token' } } } }),
      'spec.outgoingAuth.default.externalAuthConfigRef.name',
    ],
  ])('a reference of %s that leads nowhere names both ends', (_kind, referrer, path) => {
    expect(texts(load(externalAuth(SPECS.embeddedAuthServer), referrer))).toEqual([])
    const [problem, ...more] = load(externalAuth(SPECS.embeddedAuthServer, 'tokens'), referrer).problems
    expect(more).toEqual([])
    expect(problem?.path).toBe(path)
    expect(problem?.message).toBe(
      'there is no MCPExternalAuthConfig "token" in namespace "default", did you mean "tokens"?',
    )
  })

  test('references stay within one namespace', () => {
    const loaded = load(
      externalAuth(SPECS.bearerToken, 'token', 'prod'),
      proxy({ auth: OAUTH, routes: [route()] }, 'local', 'dev'),
    )
    expect(texts(loaded).join()).toContain(
      'no MCPExternalAuthConfig "token" in namespace "dev"; the one at /etc/extauth/0.json:1 is in namespace "prod"',
    )
  })

  test('a reference to a document with problems is no second problem', () => {
    const loaded = load(externalAuth({ type: 'x' }), proxy({ auth: OAUTH, routes: [route()] }))
    expect(loaded.problems.map((problem) => problem.path)).toEqual(['spec.type'])
  })

  test.each([
    ['MCPServer', 'authServerRef', 1],
    ['MCPRemoteProxy', 'externalAuthConfigRef', 1],
    ['VirtualMCPServer', undefined, 0],
  ])('%s and several upstream providers', (kind, field, count) => {
    const { embeddedAuthServer } = SPECS.embeddedAuthServer
    const [first] = embeddedAuthServer.upstreamProviders
    const several = { ...embeddedAuthServer, upstreamProviders: [first, { ...first, name: 'b' }] }
    const reference = { name: 'token' }
    const spec =
      field === undefined
        ? { outgoingAuth: { default: { externalAuthConfigRef: reference } } }
        : { remoteUrl: 'https://a', [field]: reference }
    const loaded = load(
      externalAuth({ type: 'embeddedAuthServer', embeddedAuthServer: several }),
      workload(kind, 'w', spec),
    )
    expect(loaded.problems).toHaveLength(count)
    if (count > 0)
      expect(loaded.problems[0]?.message).toBe(
        `"token" (/etc/extauth/0.json:1) has 2 upstream providers, ${kind} supports one; a VirtualMCPServer or a ProxyConfig takes several`,
      )
  })
})

describe('as a cluster reads them', () => {
  test('a field that is null is absent, and a required one is missing', () => {
    const spec = {
      type: 'tokenExchange',
      tokenExchange: { ...SPECS.tokenExchange.tokenExchange, clientId: null, scopes: null },
      bearerToken: null,
    }
    expect(texts(load(externalAuth(spec)))).toEqual([])
    const bad = { type: 'bearerToken', bearerToken: { tokenSecretRef: null } }
    expect(texts(load(externalAuth(bad))).join()).toContain(
      'spec.bearerToken.tokenSecretRef  missing, expected "tokenSecretRef" or "connectionName"',
    )
  })

  test('a list of one kind is its items', () => {
    const list = {
      apiVersion: 'extauth.dev/v1alpha1',
      kind: 'MCPExternalAuthConfigList',
      metadata: {},
      items: [externalAuth(SPECS.bearerToken)],
    }
    expect(load(list).auths).toHaveLength(1)
  })
})

describe('workload manifests', () => {
  test.each([
    ['MCPServer', { image: 'x', authServerRef: { kind: 'MCPExternalAuthConfig', name: 'token' } }],
    ['MCPRemoteProxy', { remoteUrl: 'https://a', port: 9000, oidcConfig: { type: 'kubernetes' } }],
    ['MCPServerEntry', { remoteURL: 'https://a', externalAuthConfigRef: { name: 'token' } }],
    ['VirtualMCPServer', { outgoingAuth: { source: 'inline', default: { externalAuthConfigRef: { name: 'token' } } } }],
  ] as const)('%s loads, and its JSON Schema says so too', (kind, spec) => {
    expect(texts(load(externalAuth(SPECS.embeddedAuthServer), workload(kind, 'w', spec)))).toEqual([])
    expect(jsonSchemaAccepts(kind, workload(kind, 'w', spec))).toBe(true)
  })

  test.each([
    ['MCPRemoteProxy', { remoteUrl: 'https://a', oidcConfigReff: { name: 'x' } }, 'oidcConfigReff', 'oidcConfigRef'],
    ['MCPRemoteProxy', { remoteUrl: 'https://a', authzConfg: {} }, 'authzConfg', 'authzConfig'],
    [
      'MCPRemoteProxy',
      { remoteUrl: 'https://a', externalAuthConfigref: {} },
      'externalAuthConfigref',
      'externalAuthConfigRef',
    ],
    ['MCPServer', { oidcConfigReff: { name: 'x' } }, 'oidcConfigReff', 'oidcConfigRef'],
    ['VirtualMCPServer', { incomingAuthh: {} }, 'incomingAuthh', 'incomingAuth'],
    ['VirtualMCPServer', { incomingAuth: { oidcConfigReff: {} } }, 'incomingAuth.oidcConfigReff', 'oidcConfigRef'],
    ['VirtualMCPServer', { incomingAuth: { authzConfg: {} } }, 'incomingAuth.authzConfg', 'authzConfig'],
  ] as const)('%s with a misspelled field that decides who may call is refused: %j', (kind, spec, path, meant) => {
    for (const apiVersion of ['extauth.dev/v1beta1', 'toolhive.stacklok.dev/v1beta1']) {
      const message = `spec.${path}  unknown field "${path.split('.').at(-1)}", did you mean "${meant}"?`
      const written = { ...workload(kind, 'w', spec), apiVersion }
      expect(texts(load(written))).toEqual([expect.stringContaining(message)])
      expect(parseObjects([written]).problems).toHaveLength(1)
    }
  })

  test.each([
    [
      { spec: { remoteUrl: 'https://a', headerForward: { addPlaintextHeaders: { ['__proto__']: {} } } } },
      'spec.headerForward.addPlaintextHeaders.__proto__',
    ],
    [{ spec: { remoteUrl: 'https://a', ['__proto__']: 'a' } }, 'spec.__proto__'],
    [{ spec: { remoteUrl: 'https://a' }, ['__proto__']: {} }, '__proto__'],
  ])('a key __proto__ of an object is an unknown field, as it is in a text: %#', (more, path) => {
    const object = JSON.parse(JSON.stringify({ ...workload('MCPRemoteProxy', 'w', {}), ...more })) as object
    expect(parseObjects([object]).problems).toMatchObject([{ path, message: 'unknown field "__proto__"' }])
  })

  test('a deep object is searched in linear time', () => {
    const depth = 200_000
    const object = JSON.parse(`{"spec":${'{"a":'.repeat(depth)}{"__proto__":1}${'}'.repeat(depth)}}`) as object
    const startMs = performance.now()
    expect(parseObjects([object]).problems[0]?.message).toBe('unknown field "__proto__"')
    // A quadratic search takes minutes.
    expect(performance.now() - startMs).toBeLessThan(20_000)
  })

  test('fields of other controllers are only listed; a misspelled supported field is a warning', () => {
    const spec = {
      remoteUrl: 'https://a',
      allowedOriginss: [],
      oidcConfig: {},
      transport: 'sse',
      resources: {},
    }
    const loaded = load(workload('MCPRemoteProxy', 'w', spec))
    expect(texts(loaded)).toEqual([])
    expect(loaded.unused.map((item) => item.path)).toEqual(['spec.transport', 'spec.resources'])
    expect(loaded.warnings.map((item) => item.message)).toEqual([
      'unknown field "allowedOriginss", did you mean "allowedOrigins"?',
    ])
  })

  test.each([
    [{}, 'spec.remoteUrl  missing, expected the URL of the remote MCP server'],
    [{ remoteUrl: 'https://a', remoteURL: 'https://b' }, '"remoteUrl" and "remoteURL" are mutually exclusive'],
    [{ remoteURL: 'a' }, 'spec.remoteURL  expected an http or https URL'],
    [{ remoteUrl: 'https://a', port: 0 }, 'spec.port  too small'],
    [{ remoteUrl: 'https://a', externalAuthConfigRef: {} }, 'externalAuthConfigRef.name  missing'],
    [null, 'spec  empty, expected an object'],
  ])('MCPRemoteProxy %j is a problem', (spec, problem) => {
    expect(texts(load(workload('MCPRemoteProxy', 'w', spec))).join('\n')).toContain(problem)
    expect(jsonSchemaAccepts('MCPRemoteProxy', workload('MCPRemoteProxy', 'w', spec))).toBe(false)
  })
})
