import { expect, test } from 'vitest'
import { renderProblem, resolveProxy } from '../../../../src/load/index.ts'
import { externalAuth, load, OAUTH, proxy, route, SPECS } from '../../../support/load/documents/build.ts'

const SECRET = { name: 'tenant', key: 'api-key' }
const remote = (spec: object) => ({
  apiVersion: 'toolhive.stacklok.dev/v1beta1',
  kind: 'MCPRemoteProxy',
  metadata: { name: 'tenant' },
  spec: { remoteUrl: 'https://tenant.example.com/mcp', ...spec },
})
const problemsOf = (documents: readonly object[], listen?: string): string =>
  (resolveProxy(load(...documents), listen === undefined ? {} : { listen }).problems ?? [])
    .map(renderProblem)
    .join('\n')

test.each([
  ['bearerToken', 'Authorization', 'authorization'],
  ['headerInjection', 'x_api_key', 'x_api_key'],
  ['cloudSts', 'X-Amz-Date', 'x-amz-date'],
] as const)('a header that type %s sets is not for others to set: %s', (type, header, name) => {
  const headerForward = { addPlaintextHeaders: { [header]: 'a' } }
  const documents = [externalAuth(SPECS[type]), proxy({ auth: OAUTH, routes: [route({ headerForward })] })]
  expect(problemsOf(documents)).toContain(
    `spec.routes[0].headerForward  "${name}" is set by type "${type}" already; expected another header, or none`,
  )
})

test('headers of a manifest are those of its route', () => {
  const headerForward = { addHeadersFromSecret: [{ headerName: 'X-Api-Key', valueSecretRef: SECRET }] }
  const { config } = resolveProxy(load(remote({ headerForward })), {})
  expect(config?.routes.map((one) => one.headerForward)).toEqual([
    { addPlaintextHeaders: {}, addHeadersFromSecret: headerForward.addHeadersFromSecret },
  ])
  expect(config?.places.secrets.map(({ label, holds }) => [label, holds])).toEqual([['tenant/api-key', 'header value']])
})

test('authorities of a manifest lie beside the secrets', () => {
  const caBundleRef = { configMapRef: { name: 'company-ca', key: 'ca.crt' } }
  const { config } = resolveProxy(load(remote({ caBundleRef })), { secretsDirectory: '/run/secrets' })
  expect(config?.routes.map(({ targetTls }) => targetTls)).toEqual([
    { caCertPath: '/run/secrets/company-ca/ca.crt', insecureSkipVerify: false },
  ])
})

test('they are a credential: not for anonymous callers from the network, and not on paths that are open', () => {
  const manifest = remote({ headerForward: { addPlaintextHeaders: { 'X-Api-Key': 'a' } } })
  expect(problemsOf([manifest])).toBe('')
  expect(problemsOf([manifest], '0.0.0.0:8080')).toContain('anyone on the network could use this credential')
  const section = { ...OAUTH, oauth: { ...OAUTH.oauth, publicPaths: ['/a/health'] } }
  const open = route({
    externalAuthConfigRef: { name: 'none' },
    headerForward: { addPlaintextHeaders: { 'X-Api-Key': 'a' } },
    auth: section,
  })
  const documents = [externalAuth({ type: 'unauthenticated' }, 'none'), proxy({ routes: [open] })]
  expect(problemsOf(documents)).toContain('"publicPaths" are only allowed on routes of type "unauthenticated"')
})
