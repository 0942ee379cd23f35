import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { CLUSTER_TYPES } from '../../src/operator/index.ts'
import { eventually } from './support/control-plane.ts'
import { documentedShell, generations, type OperatorPod, SYSTEM, useInstallation } from './support/installation.ts'
import { config, namespaceObject, root, types, workload } from './support/operator-rig.ts'

// From an empty cluster and back, by the commands of docs/kubernetes.md, with the manifests as they are shipped: webhooks are
// asked through the Service that they name, and the operator is the process that its pod asks for.
const cluster = useInstallation()
const SPACE = 'work'
const PAGE = 'docs/kubernetes.md'
const IMAGE = 'registry.example.com/team/extauth:1.2.3'
/** As people take the base over: an overlay of their own that names one image. */
const BASE = mkdtempSync(path.join(tmpdir(), 'extauth-overlay-'))
writeFileSync(
  path.join(BASE, 'kustomization.yaml'),
  JSON.stringify({
    resources: [path.relative(realpathSync(BASE), path.join(root, 'config/deploy/operator'))],
    images: [{ name: 'mcp-extauth', newName: 'registry.example.com/team/extauth', newTag: '1.2.3' }],
  }),
)
afterAll(() => rmSync(BASE, { recursive: true }))
let operator: OperatorPod

const REMOTE = {
  remoteUrl: 'https://api.example.com/mcp',
  externalAuthConfigRef: { name: 'c' },
  resourceUrl: 'https://mcp.example.com',
  oidcConfig: { type: 'inline', inline: { issuer: 'https://idp.example.com', audience: 'mcp' } },
}

/** A referenced config, and an unreferenced one. */
async function work(): Promise<void> {
  const { client } = cluster
  await client.apply(CLUSTER_TYPES.Namespace, namespaceObject(SPACE))
  await client.apply(types.MCPExternalAuthConfig, config('c', SPACE))
  await client.apply(types.MCPExternalAuthConfig, config('alone', SPACE))
  await client.apply(types.MCPRemoteProxy, workload('MCPRemoteProxy', 'p', REMOTE, SPACE))
  await eventually(async () => {
    const { metadata, status } = await client.get(types.MCPExternalAuthConfig, SPACE, 'c')
    expect(metadata.finalizers).toEqual(['extauth.dev/external-auth-references'])
    expect(status).toMatchObject({ referencingWorkloads: [{ kind: 'MCPRemoteProxy', name: 'p' }] })
  })
  const { spec } = await eventually(() => client.get(CLUSTER_TYPES.Deployment, SPACE, 'p-extauth'))
  expect(spec).toMatchObject({ template: { spec: { containers: [{ image: IMAGE }] } } })
}
/** Names of what is still there of an installation, beyond namespaces that we made ourselves. */
const left = (): string[] =>
  cluster
    .kubectl(
      'get',
      'crd,ns,clusterrole,clusterrolebinding,validatingwebhookconfiguration,mutatingwebhookconfiguration',
      '-o',
      'name',
    )
    .split('\n')
    .filter((name) => name.includes('extauth'))

test('the base is applied to an empty cluster, and its webhooks judge through the Service that they name', async () => {
  cluster.kubectl('apply', '-k', BASE)
  operator = await cluster.runOperatorPod()
  await work()
  const broken = {
    type: 'cloudSts',
    cloudSts: {
      region: 'us-east-1',
      roleMappings: [{ roleArn: 'arn:aws:iam::123456789012:role/r', matcher: 'claims.' }],
    },
  }
  await expect(cluster.client.apply(types.MCPExternalAuthConfig, config('broken', SPACE, broken))).rejects.toThrow(
    'spec.cloudSts.roleMappings[0].matcher',
  )
}, 240_000)

test('applying it again raises no generation, by either kind of apply, and the CA of the webhooks stays', async () => {
  const bundles = (): string =>
    cluster.kubectl(
      'get',
      'validatingwebhookconfiguration,mutatingwebhookconfiguration',
      'extauth',
      '-o',
      'jsonpath={.items[*].webhooks[*].clientConfig.caBundle}',
    )
  const before = generations(cluster)
  const trusted = bundles()
  expect(trusted.split(' ').filter((one) => one.length > 100)).toHaveLength(2)
  cluster.kubectl('apply', '-k', BASE)
  expect(generations(cluster)).toEqual(before)
  // As Flux does and Argo CD can be told to; a conflict with the operator over a field would be an error here. The first time
  // after the other kind the API server counts the Deployment up, though nothing of it is different.
  const apply = (): string => cluster.kubectl('apply', '--server-side', '--field-manager=gitops', '-k', BASE)
  apply()
  const bySide = generations(cluster)
  apply()
  expect(generations(cluster)).toEqual(bySide)
  expect(bySide.filter((one) => !one.startsWith('Deployment/extauth-operator'))).toEqual(
    before.filter((one) => !one.startsWith('Deployment/extauth-operator')),
  )
  expect(before.length).toBeGreaterThan(8)
  expect(bundles()).toBe(trusted)
}, 240_000)

test('kubectl waits, shows, explains and describes', async () => {
  cluster.kubectl('wait', '--for=condition=Ready', 'extauth/c', '-n', SPACE, '--timeout=20s')
  const text = cluster.kubectl('describe', 'extauth', 'c', '-n', SPACE)
  expect(text).toMatch(
    /Events:[\s\S]*Normal +ConfigReady .*extauth\.dev\/operator +Ready: the configuration can be used/,
  )
  const [head = '', row = ''] = cluster.kubectl('get', 'mcprp', '-n', SPACE).trim().split('\n')
  expect(head.split(/\s{2,}/)).toEqual(['NAME', 'READY', 'REASON', 'REPLICAS', 'CONFIG', 'URL', 'SERVICE', 'AGE'])
  const shown = row.split(/\s+/)
  expect([shown[1], shown[2]]).toEqual(['False', expect.stringMatching(/^[A-Z][A-Za-z]+$/)])
  expect(shown.slice(4, 7)).toEqual(['c', `http://p-extauth.${SPACE}.svc.cluster.local:8080`, 'p-extauth'])
  for (const field of [
    'extauth.spec',
    'extauth.status',
    'extauth.status.conditions',
    'mcpremoteproxy.spec',
    'mcpremoteproxy.status',
  ]) {
    const explained = cluster.kubectl('explain', field)
    expect(explained).not.toContain('<empty>')
    expect(explained).not.toContain('<no description>')
  }
})

test('without its operator only changes outside of specs are admitted; unreconciled objects are not ready for waiting tools', async () => {
  await operator.end()
  // It was killed; the next one need not wait until the lease has run out.
  cluster.kubectl('delete', 'lease', 'extauth-operator', '-n', SYSTEM)
  cluster.kubectl('label', 'extauth/alone', '-n', SPACE, 'a=b')
  await expect(cluster.client.apply(types.MCPExternalAuthConfig, config('new', SPACE))).rejects.toThrow(
    'failed calling webhook',
  )
  cluster.kubectl('delete', 'validatingwebhookconfiguration', 'extauth')
  await cluster.client.apply(types.MCPExternalAuthConfig, config('new', SPACE))
  expect((await cluster.client.get(types.MCPExternalAuthConfig, SPACE, 'new')).status).toEqual({
    observedGeneration: -1,
  })
  cluster.kubectl('apply', '-k', BASE)
  operator = await cluster.runOperatorPod()
  // The CA is restored automatically.
  await eventually(() =>
    cluster.client.apply(types.MCPExternalAuthConfig, config('new', SPACE, { type: 'unauthenticated' })),
  )
  cluster.kubectl('wait', '--for=condition=Ready', 'extauth/new', '-n', SPACE, '--timeout=20s')
}, 240_000)

test('the documented order of uninstalling leaves nothing, and ends', async () => {
  await cluster.shell(documentedShell(PAGE, '## Uninstall'), 60_000)
  await operator.end()
  expect(left()).toEqual([])
}, 240_000)

test('when the operator goes first, deleting waits, and the documented way out ends it', async () => {
  cluster.kubectl('apply', '-k', BASE)
  operator = await cluster.runOperatorPod()
  await work()
  await operator.end()
  await cluster.client.remove(CLUSTER_TYPES.Namespace, undefined, SPACE)
  await expect(cluster.shell(`kubectl delete -k ${BASE} --ignore-not-found --timeout=5s`)).rejects.toThrow('timed out')
  expect((await cluster.client.get(types.MCPExternalAuthConfig, SPACE, 'c')).metadata.deletionTimestamp).toBeDefined()
  await cluster.shell(documentedShell(PAGE, '### The operator was removed first'))
  await eventually(() => expect(left()).toEqual([]))
  await eventually(() =>
    expect(cluster.client.get(CLUSTER_TYPES.Namespace, undefined, SPACE)).rejects.toMatchObject({ status: 404 }),
  )
}, 180_000)
