import { expect, test } from 'vitest'
import { parseObjects, resolveProxy } from '../../../../src/load/index.ts'

const problemsOf = (kind: string, more: object): string[] =>
  parseObjects([
    {
      apiVersion: 'extauth.dev/v1alpha1',
      kind,
      metadata: { name: 'p' },
      spec: { remoteUrl: 'https://a.example.com', ...more },
    },
  ]).problems.map(({ path, message }) => `${path}: ${message}`)

test.each(['MCPRemoteProxy', 'MCPServerEntry'])(
  'a credential or an authority of an %s is not left out in silence',
  (kind) => {
    const secret = { headerName: 'X-Key', valueSecretRef: { name: 'a', key: 'b' } }
    expect(problemsOf(kind, { headerForward: { addHeadersFromSecrets: [secret] } }).join()).toContain(
      'spec.headerForward.addHeadersFromSecrets: unknown field "addHeadersFromSecrets", did you mean "addHeadersFromSecret"?',
    )
    expect(problemsOf(kind, { caBundleRef: { configMap: { name: 'a', key: 'b' } } }).join()).toContain(
      'spec.caBundleRef.configMap: unknown field "configMap", did you mean "configMapRef"?',
    )
    expect(problemsOf(kind, { headerForward: { addHeadersFromSecret: [] } })).toEqual([])
    expect(problemsOf(kind, { headerForward: { addPlaintextHeaders: {} } })).toEqual([])
    expect(problemsOf(kind, {})).toEqual([])
  },
)

test.each([
  [[{ workload: 'a', toolConfigRef: { name: 'read-only' } }], true],
  [[{ workload: 'a', excludeAll: true }], true],
  [[{ workload: 'a', filter: ['read'] }], true],
  [[{ workload: 'a', filter: [], excludeAll: false, overrides: { read: { name: 'look' } } }], false],
])('what hides tools of a VirtualMCPServer is refused, what only names them is not: %j', (tools, isRefused) => {
  const loaded = parseObjects([
    {
      apiVersion: 'toolhive.stacklok.dev/v1beta1',
      kind: 'VirtualMCPServer',
      metadata: { name: 'v' },
      spec: { config: { aggregation: { conflictResolution: 'prefix', tools } } },
      status: { discoveredBackends: [{ name: 'a', url: 'https://a.example.com/mcp' }] },
    },
  ])
  const { problems = [] } = resolveProxy(loaded, { listen: '127.0.0.1:0' })
  const refusal = 'each backend is a route of its own with all its tools; expected none'
  expect(problems.map(({ path, message }) => [path, message])).toEqual(
    isRefused ? [['spec.config.aggregation.tools', refusal]] : [],
  )
})
