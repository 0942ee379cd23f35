import { expect, test } from 'vitest'
import { parseDocuments, renderProblem } from '../../../../src/load/index.ts'
import { externalAuth, proxy, route } from '../../../support/load/documents/build.ts'

const problemsOf = (...documents: readonly object[]): readonly string[] => {
  const text = documents.map((document) => JSON.stringify(document)).join('\n---\n')
  return parseDocuments([{ path: 'a.yaml', text }]).problems.map(renderProblem)
}
const REFUSED = 'plain http is only used for loopback and in-cluster names'
const provider = (more: object) => ({ name: 'corp', issuerUrl: 'https://idp.example.com', audience: 'mcp', ...more })
const auth = (more: object) => ({
  mode: 'oauth',
  oauth: { resourceUrl: 'https://mcp.example.com', providers: [provider(more)] },
})

test('a document that breaks its schema names its plain-http URLs in the same run', () => {
  const found = problemsOf(
    proxy({
      auth: auth({ issuerUrl: 'http://idp.example.com' }),
      routes: [route({ path: 'no-slash', auth: auth({ jwksUrl: 'http://keys.example.com/jwks' }) })],
    }),
    externalAuth({ type: 'tokenExchange', tokenExchange: { tokenUrl: 'http://idp.example.com/token', unknown: 1 } }),
  )
  expect(found.filter((line) => line.includes(REFUSED)).map((line) => /spec\.\S+/.exec(line)?.[0])).toEqual([
    'spec.auth.oauth.providers[0].issuerUrl',
    'spec.routes[0].auth.oauth.providers[0].jwksUrl',
    'spec.tokenExchange.tokenUrl',
  ])
  expect(found.some((line) => line.includes('expected a path prefix'))).toBe(true)
})

test.each([
  ['loopback', { issuerUrl: 'http://127.0.0.1:8080' }],
  ['in-cluster names', { issuerUrl: 'http://idp.default.svc' }],
  ['what is allowed', { issuerUrl: 'http://idp.example.com', insecureAllowHttp: true }],
  ['https', {}],
])('%s there is no problem of its own', (_name, more) => {
  const found = problemsOf(proxy({ auth: auth(more), routes: [route({ path: 'no-slash' })] }))
  expect(found.filter((line) => line.includes(REFUSED))).toEqual([])
})
