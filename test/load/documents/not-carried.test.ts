import { expect, test } from 'vitest'
import { parseObjects } from '../../../src/load/index.ts'

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
