import { afterEach, expect, test } from 'vitest'
import { createFakeCluster } from '../../support/operator/fake-cluster.ts'
import { conditionsOf, object } from '../../support/operator/objects.ts'
import { inlineProvider, oidcConfigRef } from '../../support/operator/shared-configs.ts'
import { closeAll, type Closers, startController } from '../../support/operator/start-controller.ts'

// The effect of an MCPOIDCConfig on pods of a proxy. Common behavior is in shared-configs.test.ts.
const closers: Closers = []
afterEach(() => closeAll(closers))

const auth = object('MCPExternalAuthConfig', 'corp', { type: 'unauthenticated' })
const proxy = object('MCPRemoteProxy', 'p', {
  remoteUrl: 'https://api.example.com/mcp',
  externalAuthConfigRef: { name: 'corp' },
  oidcConfigRef,
})

test('its status does not mention pods without injection', async () => {
  const cluster = createFakeCluster()
  cluster.put(inlineProvider())
  const { observed } = await startController(cluster, closers)
  expect(conditionsOf(observed.shared('MCPOIDCConfig', 'n', 'corp'))).toEqual([
    'Valid True ValidationSucceeded',
    'SecretsResolved Unknown SecretsNotWatched',
    'Ready True ConfigReady',
    'DeletionBlocked False NotReferenced',
  ])
})

test('pods of a proxy get the document, its keys, and ways to its provider', async () => {
  const cluster = createFakeCluster()
  for (const one of [auth, inlineProvider(), proxy]) cluster.put(one)
  await startController(cluster, closers)
  const written = (kind: string): string => JSON.stringify(cluster.stored(kind, 'n/p-extauth'))
  // Both configs have one name.
  expect(Object.keys(cluster.stored('ConfigMap', 'n/p-extauth')?.data as object)).toEqual(
    expect.arrayContaining(['auth-corp.yaml', 'oidc-corp.yaml']),
  )
  expect(written('Deployment')).toContain('"secretName":"oidc"')
  expect(written('Deployment')).toContain('"key":"ca.crt"')
  expect(written('Deployment')).not.toContain('serviceAccountToken"')
  expect(written('NetworkPolicy')).toContain('8443')
})

test('who asks the API server for its keys gets a token of its service account', async () => {
  const cluster = createFakeCluster()
  cluster.put(auth)
  cluster.put(object('MCPOIDCConfig', 'corp', { type: 'kubernetesServiceAccount', kubernetesServiceAccount: {} }))
  cluster.put(proxy)
  await startController(cluster, closers)
  expect(JSON.stringify(cluster.stored('Deployment', 'n/p-extauth'))).toContain('"serviceAccountToken":{')
})

test('a change of it reaches the pods of its proxies', async () => {
  const cluster = createFakeCluster()
  for (const one of [auth, inlineProvider(), proxy]) cluster.put(one)
  await startController(cluster, closers)
  const before = JSON.stringify(cluster.stored('ConfigMap', 'n/p-extauth')?.data)
  cluster.put(inlineProvider({ issuer: 'https://other.example.com' }))
  await expect.poll(() => JSON.stringify(cluster.stored('ConfigMap', 'n/p-extauth')?.data)).not.toBe(before)
  expect(JSON.stringify(cluster.stored('ConfigMap', 'n/p-extauth')?.data)).toContain('https://other.example.com')
})
