import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'
import type { KubeObject } from '../../src/kube/index.ts'
import { CRD_KINDS, type CrdKind, customResourceDefinition } from '../../src/load/publish/index.ts'
import { CLUSTER_TYPES, type Operator, ownTypes } from '../../src/operator/index.ts'
import { eventually } from './support/control-plane.ts'
import { EARLIER_KINDS, earlierDefinition } from './support/definitions.ts'
import { generations, useInstallation } from './support/installation.ts'
import { config, GROUP, runOperator, types, workload } from './support/operator-rig.ts'
import { CRDS } from './support/other-operator.ts'

// From definitions that had v1alpha1 only to those of today, with objects stored, by `kubectl apply`.
const cluster = useInstallation()
const older = ownTypes(GROUP, 'v1alpha1')
const directory = mkdtempSync(path.join(tmpdir(), 'extauth-versions-'))
let operator: Operator | undefined
afterAll(async () => {
  await operator?.close()
  rmSync(directory, { recursive: true })
})

function applyDefinitions(kinds: readonly CrdKind[], made: (kind: CrdKind) => object): void {
  for (const kind of kinds) {
    const file = path.join(directory, `${kind}.json`)
    writeFileSync(file, JSON.stringify(made(kind)))
    cluster.kubectl('apply', '-f', file)
  }
}

const asOlder = (object: KubeObject): KubeObject => ({ ...object, apiVersion: `${GROUP}/v1alpha1` })
const spec = {
  remoteUrl: 'https://api.example.com/mcp',
  externalAuthConfigRef: { name: 'c' },
  resourceUrl: 'https://mcp.example.com',
  oidcConfig: { type: 'inline', inline: { issuer: 'https://idp.example.com', audience: 'mcp' } },
}
const plain = ({ apiVersion: _version, metadata: { managedFields: _fields, ...metadata }, ...rest }: KubeObject) => ({
  ...rest,
  metadata,
})

test('objects that were stored as v1alpha1 are there as both versions, and pods go on as they are', async () => {
  const { client } = cluster
  applyDefinitions(EARLIER_KINDS, earlierDefinition)
  await eventually(() => client.apply(older.MCPExternalAuthConfig, asOlder(config('c'))))
  await eventually(() => client.apply(older.MCPRemoteProxy, asOlder(workload('MCPRemoteProxy', 'p', spec))))
  const stored = await client.get(older.MCPRemoteProxy, 'default', 'p')

  applyDefinitions(CRD_KINDS, (kind) => customResourceDefinition(GROUP, kind))
  const read = await eventually(() => client.get(types.MCPRemoteProxy, 'default', 'p'))
  expect(read.apiVersion).toBe(`${GROUP}/v1beta1`)
  expect(plain(read)).toEqual(plain(stored))
  const definition = await client.get(CRDS, undefined, `mcpremoteproxies.${GROUP}`)
  expect(definition.status).toMatchObject({ storedVersions: ['v1alpha1', 'v1beta1'] })
  for (const version of ['v1alpha1', 'v1beta1']) {
    const shown = cluster.kubectl('get', `mcpremoteproxies.${version}.${GROUP}`, 'p', '-o', 'jsonpath={.apiVersion}')
    expect(shown).toBe(`${GROUP}/${version}`)
  }
}, 120_000)

test('the operator works on them, and writes what pods of before can read', async () => {
  const { client } = cluster
  operator = await runOperator(client)
  await eventually(async () => {
    const { status } = await client.get(older.MCPExternalAuthConfig, 'default', 'c')
    expect(status).toMatchObject({ referencingWorkloads: [{ kind: 'MCPRemoteProxy', name: 'p' }] })
  })
  const { data, metadata } = await eventually(() => client.get(CLUSTER_TYPES.ConfigMap, 'default', 'p-extauth'))
  // By the version that the definitions of the release before serve too.
  expect(metadata.ownerReferences).toMatchObject([{ apiVersion: `${GROUP}/v1alpha1`, kind: 'MCPRemoteProxy' }])
  for (const text of Object.values(data as Record<string, string>))
    expect(text).toContain(`apiVersion: ${GROUP}/v1alpha1\n`)
}, 120_000)

test('what is applied by one version is read by the other, and applied again by it without a change', async () => {
  const { client } = cluster
  const wanted = workload('MCPRemoteProxy', 'q', { ...spec, replicas: 2 })
  const applied = await client.apply(older.MCPRemoteProxy, asOlder(wanted))
  const again = await client.apply(types.MCPRemoteProxy, wanted)
  expect(again.metadata.generation).toBe(applied.metadata.generation)
  expect(again.spec).toEqual(applied.spec)
  // A field that is left out by the other version is taken away: both are one manager's.
  const { replicas: _two, ...rest } = wanted.spec as { replicas: number }
  const less = await client.apply(older.MCPRemoteProxy, asOlder({ ...wanted, spec: rest }))
  expect(less.spec).not.toHaveProperty('replicas')
  const refused = client.apply(older.MCPRemoteProxy, asOlder({ ...wanted, spec: { ...spec, replicas: -1 } }))
  await expect(refused).rejects.toMatchObject({ status: 422 })
}, 120_000)

test('an upgrade with objects raises no generation', async () => {
  await operator?.idle()
  const before = generations(cluster)
  applyDefinitions(CRD_KINDS, (kind) => customResourceDefinition(GROUP, kind))
  await operator?.idle()
  expect(generations(cluster)).toEqual(before)
}, 120_000)
