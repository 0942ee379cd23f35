import { afterEach, expect, test } from 'vitest'
import { createFakeCluster } from '../../support/operator/fake-cluster.ts'
import { object } from '../../support/operator/objects.ts'
import { closeAll, type Closers, startController } from '../../support/operator/start-controller.ts'

const closers: Closers = []
afterEach(() => closeAll(closers))

const valueSecretRef = { name: 'tenant', key: 'api-key' }

/** Reconciles a proxy with these headers, whose type sets X-Api-Key. */
async function proxyWith(headerForward: object) {
  const cluster = createFakeCluster()
  const headerInjection = { headerName: 'X-Api-Key', valueSecretRef: { name: 'key', key: 'value' } }
  cluster.put(object('MCPExternalAuthConfig', 'key', { type: 'headerInjection', headerInjection }))
  cluster.put(object('MCPOIDCConfig', 'corp', { type: 'inline', inline: { issuer: 'https://idp.example.com' } }))
  cluster.put(
    object('MCPRemoteProxy', 'p', {
      remoteUrl: 'https://api.example.com/mcp',
      externalAuthConfigRef: { name: 'key' },
      oidcConfigRef: { name: 'corp', audience: 'mcp', resourceUrl: 'https://mcp.example.com' },
      caBundleRef: { configMapRef: { name: 'company-ca', key: 'ca.crt' } },
      headerForward,
    }),
  )
  const { observed } = await startController(cluster, closers)
  const status = JSON.stringify(observed.workload('MCPRemoteProxy', 'n', 'p')?.status)
  return { status, written: (kind: string) => JSON.stringify(cluster.stored(kind, 'n/p-extauth') ?? {}) }
}

test('pods get headers and authorities of a proxy, the secrets as files', async () => {
  const { status, written } = await proxyWith({
    addPlaintextHeaders: { 'X-Tenant': '42' },
    addHeadersFromSecret: [{ headerName: 'X-Second-Key', valueSecretRef }],
  })
  expect(status).not.toContain('SpecInvalid')
  expect(written('ConfigMap')).toContain('X-Second-Key')
  expect(written('ConfigMap')).toContain('company-ca')
  const deployment = written('Deployment')
  expect(deployment).toContain('"secretName":"tenant"')
  expect(deployment).toContain('/etc/extauth-secrets/tenant')
  expect(deployment).toContain('/etc/extauth-secrets/company-ca')
})

test('a header that the type sets makes no pods, and the status says why', async () => {
  const { status, written } = await proxyWith({ addHeadersFromSecret: [{ headerName: 'x_api_key', valueSecretRef }] })
  expect(status).toContain('is set by type')
  expect(written('Deployment')).toBe('{}')
})
