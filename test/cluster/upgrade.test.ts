import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { freePort, type LabBackend, startLabBackend } from '../../lab/index.ts'
import type { KubeObject } from '../../src/kube/index.ts'
import { CRD_KINDS, type CrdKind, customResourceDefinition } from '../../src/load/publish/index.ts'
import { CLUSTER_TYPES, type Operator, ownTypes } from '../../src/operator/index.ts'
import { type BuiltProgram, buildProgram } from '../support/deploy/built-program.ts'
import type { Running } from '../support/e2e/process.ts'
import { eventually } from './support/control-plane.ts'
import { EARLIER_KINDS, earlierDefinition, laterDefinition } from './support/definitions.ts'
import { documentedShell, useInstallation } from './support/installation.ts'
import { type Kubelet, openKubelet } from './support/kubelet.ts'
import { config, GROUP, namespaceObject, runOperator, types, workload } from './support/operator-rig.ts'
import { CRDS } from './support/other-operator.ts'

// One operator with the definitions of the release before, its own and those of the next release, and back, while a pod that it
// made serves calls and configs are edited through its webhook.
const SPACE = 'skew'
const older = ownTypes(GROUP, 'v1alpha1')
const next = ownTypes(GROUP, 'v1')
const cluster = useInstallation()
let program: BuiltProgram
let backend: LabBackend
let operator: Operator
let kubelet: Kubelet | undefined
let proxy: Running | undefined
let url = ''

const oldForm = (object: KubeObject): KubeObject => ({ ...object, apiVersion: `${GROUP}/v1alpha1` })
async function applyDefinitions(kinds: readonly CrdKind[], made: (kind: CrdKind) => object): Promise<void> {
  await Promise.all(kinds.map((kind) => eventually(() => install(JSON.stringify(made(kind))))))
}
/** As the base installs it: with its label. */
async function install(text: string): Promise<void> {
  const definition = parse(text) as KubeObject
  const labels = { ...definition.metadata.labels, 'app.kubernetes.io/name': 'mcp-extauth' }
  await cluster.client.apply(CRDS, { ...definition, metadata: { ...definition.metadata, labels } })
}
const storedVersions = async (): Promise<unknown> => {
  const { status } = await eventually(() => cluster.client.get(CRDS, undefined, `mcpremoteproxies.${GROUP}`))
  return (status as { storedVersions: unknown }).storedVersions
}
const generation = async (): Promise<number | undefined> =>
  (await eventually(() => cluster.client.get(CLUSTER_TYPES.Deployment, SPACE, 'p-extauth'))).metadata.generation

async function call(): Promise<number> {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const answer = await fetch(url, { method: 'POST', body, headers })
  await answer.body?.cancel()
  return answer.status
}

/** Calls through the pod while `during` goes on; gives what was answered other than 200, and how many calls there were. */
async function lostWhile(during: () => Promise<unknown>): Promise<{ lost: unknown[]; calls: number }> {
  const over = new AbortController()
  const lost: unknown[] = []
  let calls = 0
  const traffic = (async () => {
    while (!over.signal.aborted) {
      calls += 1
      const status = await call().catch(String)
      if (status !== 200) lost.push(status)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  })()
  try {
    await during()
  } finally {
    over.abort()
    await traffic
  }
  return { lost, calls }
}

const header = (name: string): object => ({
  type: 'headerInjection',
  headerInjection: { headerName: name, valueSecretRef: { name: 'token', key: 'value' } },
})
let edits = 0
/** A person edits a config by this version: the webhook lets a good one in, and refuses one that only the rules know as wrong. */
async function edit(of: typeof types): Promise<void> {
  const { apiVersion } = { apiVersion: `${GROUP}/${of.MCPExternalAuthConfig.version}` }
  const written = (spec: object): KubeObject => ({ ...config('edited', SPACE, spec), apiVersion })
  edits += 1
  await eventually(() => cluster.client.apply(of.MCPExternalAuthConfig, written(header(`X-Key-${edits}`))))
  await eventually(async () => {
    const { status, metadata } = await cluster.client.get(older.MCPExternalAuthConfig, SPACE, 'edited')
    expect(status).toMatchObject({ observedGeneration: metadata.generation })
  })
  const wrong = {
    type: 'cloudSts',
    cloudSts: { region: 'us-east-1', roleMappings: [{ roleArn: ROLE, matcher: 'claims.' }] },
  }
  const tryWrong = () =>
    cluster.client.create(of.MCPExternalAuthConfig, { ...config('wrong', SPACE, wrong), apiVersion }, { dryRun: true })
  const refusal = { message: expect.stringContaining('denied the request') as string }
  await eventually(() => expect(tryWrong()).rejects.toMatchObject(refusal))
}
const ROLE = 'arn:aws:iam::123456789012:role/r'

const restart = async (): Promise<void> => {
  await operator.close()
  operator = await runOperator(cluster.client, { webhook: true })
}

beforeAll(async () => {
  program = buildProgram()
  const demand = { kind: 'none' } as const
  backend = await startLabBackend({ port: 0, mounts: { '/mcp': demand }, clock: { now: () => Date.now() } })
}, 120_000)
afterAll(async () => {
  proxy?.process.kill('SIGKILL')
  kubelet?.close()
  await operator?.close()
  await backend?.close()
  program?.remove()
}, 60_000)

test('definitions of the previous release: the operator runs a proxy, and its webhook validates', async () => {
  const { client } = cluster
  await applyDefinitions(EARLIER_KINDS, earlierDefinition)
  await eventually(() => client.list(older.MCPRemoteProxy, {}))
  await operator?.close()
  operator = await runOperator(client, { webhook: true })
  // Its watches are synced one after the other.
  await eventually(() => expect(operator?.readiness()).toMatchObject({ ok: true }))
  await client.apply(CLUSTER_TYPES.Namespace, namespaceObject(SPACE))
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'token', namespace: SPACE } }
  await client.apply(CLUSTER_TYPES.Secret, { ...secret, data: { value: Buffer.from('value').toString('base64') } })
  await client.apply(older.MCPExternalAuthConfig, oldForm(config('c', SPACE, { type: 'unauthenticated' })))
  const port = await freePort()
  const spec = {
    remoteUrl: `${backend.url}/mcp`,
    port,
    externalAuthConfigRef: { name: 'c' },
    auth: { mode: 'anonymous' },
  }
  await eventually(() => client.apply(older.MCPRemoteProxy, oldForm(workload('MCPRemoteProxy', 'p', spec, SPACE))))
  const pod = await eventually(async () => {
    const selection = { namespace: SPACE, labelSelector: 'app.kubernetes.io/component=mcp-remote-proxy' }
    const [found] = (await client.list(CLUSTER_TYPES.Pod, selection)).items
    if (found === undefined) throw new Error('no pod yet')
    return found
  })
  kubelet = await eventually(() => openKubelet(client, pod, 'extauth'))
  proxy = kubelet.start(['--admin', '127.0.0.1:0'])
  await proxy.line('listening')
  url = `http://127.0.0.1:${port}/mcp`
  await eventually(async () => expect(await call()).toBe(200))
  await edit(older)
}, 400_000)

test('upgrade to the definitions that the built program prints: no call is lost, no pod rolls', async () => {
  const before = await generation()
  const { lost, calls } = await lostWhile(async () => {
    for (const kind of CRD_KINDS) await install((await program.run(['schema', '--crd', kind])).stdout)
    await eventually(() => cluster.client.list(types.MCPOIDCConfig, {}))
    // The replica that was there before answers for objects of the version that it does not know by name.
    await edit(types)
    await restart()
    await edit(types)
    await edit(older)
  })
  expect({ lost, after: await generation() }).toEqual({ lost: [], after: before })
  expect(calls).toBeGreaterThan(10)
  expect(await storedVersions()).toEqual(['v1alpha1', 'v1beta1'])
}, 400_000)

test('definitions of the next release: the operator goes on, and what the next one writes into a status is none of its business', async () => {
  const before = await generation()
  const { client } = cluster
  const { lost } = await lostWhile(async () => {
    await applyDefinitions(CRD_KINDS, laterDefinition)
    await eventually(() => client.list(next.MCPExternalAuthConfig, {}))
    const status = { status: { ofTheNext: 'something', conditions: [] } }
    await eventually(() => client.merge(next.MCPExternalAuthConfig, SPACE, 'edited', status, { subresource: 'status' }))
    await edit(next)
    await restart()
    await edit(next)
    await edit(types)
  })
  expect({ lost, after: await generation() }).toEqual({ lost: [], after: before })
  // Back to those of this release: what is stored by v1 has to be written again first, as the next release documents it.
  await applyDefinitions(CRD_KINDS, (kind) => withStorage(laterDefinition(kind), 'v1beta1'))
  await rewriteAs('v1beta1')
  await applyDefinitions(CRD_KINDS, (kind) => customResourceDefinition(GROUP, kind))
  await edit(types)
}, 400_000)

test('back to the definitions of the release before, with the commands that are documented', async () => {
  const before = await generation()
  // Without them the API server refuses definitions that lack a stored version.
  await expect(install(JSON.stringify(earlierDefinition('MCPRemoteProxy')))).rejects.toMatchObject({
    message: expect.stringContaining('storedVersions') as string,
  })
  const script = documentedShell('docs/upgrade.md', '## Roll back')
  const { lost, calls } = await lostWhile(async () => {
    await cluster.shell(script, 300_000)
    const added = CRD_KINDS.filter((kind) => !EARLIER_KINDS.includes(kind))
    await cluster.shell(`kubectl delete crd ${added.map((kind) => `${types[kind].plural}.${GROUP}`).join(' ')}`)
    await applyDefinitions(EARLIER_KINDS, earlierDefinition)
    await edit(older)
    await restart()
    await edit(older)
  })
  expect({ lost, after: await generation() }).toEqual({ lost: [], after: before })
  expect(calls).toBeGreaterThan(10)
  expect(await storedVersions()).toEqual(['v1alpha1'])
}, 400_000)

interface Versioned {
  readonly spec: { readonly versions: readonly { readonly name: string }[] }
}
function withStorage(definition: object, stored: string): object {
  const { spec, ...rest } = definition as Versioned
  const versions = spec.versions.map((version) => ({ ...version, storage: version.name === stored }))
  return { ...rest, spec: { ...spec, versions } }
}

/** The commands of the page, with other versions. */
async function rewriteAs(stored: string): Promise<void> {
  const script = documentedShell('docs/upgrade.md', '## Roll back')
  await cluster.shell(script.replace(/^version=.*$/m, `version=${stored}`), 300_000)
}
