import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, test } from 'vitest'
import type { KubeObject } from '../../../src/kube/index.ts'
import { CLUSTER_TYPES } from '../../../src/operator/index.ts'
import {
  documentedChecks,
  GITOPS_RECORD_PATH,
  type GitopsVerdict,
  readGitopsRecord,
  WANTED,
} from '../../support/deploy/gitops-record.ts'
import { findProgram, GITOPSCHECK } from '../support/binary.ts'
import { eventually } from '../support/control-plane.ts'
import { config, namespaceObject, types, workload } from '../support/operator-rig.ts'
import { useCluster } from '../support/use-cluster.ts'

// Objects in each state, as a real API server has them, for the code of Argo CD's interpreter, Flux and kstatus.
const SPACE = 'gitops'
const cluster = useCluster()
const REMOTE = {
  remoteUrl: 'https://api.example.com/mcp',
  externalAuthConfigRef: { name: 'ready' },
  resourceUrl: 'https://mcp.example.com',
  oidcConfig: { type: 'inline', inline: { issuer: 'https://idp.example.com', audience: 'mcp' } },
  replicas: 1,
}
const BROKEN = {
  type: 'cloudSts',
  cloudSts: {
    region: 'us-east-1',
    roleMappings: [{ roleArn: 'arn:aws:iam::123456789012:role/r', matcher: 'claims.' }],
  },
}

/** `status/reason` of its condition Ready; empty where it has none. */
function readyOf({ status }: KubeObject): string {
  const { conditions = [] } = (status ?? {}) as { conditions?: { type: string; status: string; reason: string }[] }
  const ready = conditions.find(({ type }) => type === 'Ready')
  return ready === undefined ? '' : `${ready.status}/${ready.reason}`
}
const getConfig = (name: string) => cluster.client.get(types.MCPExternalAuthConfig, SPACE, name)
const getProxy = (name: string) => cluster.client.get(types.MCPRemoteProxy, SPACE, name)
const isReady = (get: () => Promise<KubeObject>, expected: string): Promise<KubeObject> =>
  eventually(async () => {
    const object = await get()
    expect(readyOf(object)).toBe(expected)
    return object
  })
const makeConfig = (name: string, spec?: object) =>
  cluster.client.apply(types.MCPExternalAuthConfig, config(name, SPACE, spec))
const makeProxy = (name: string, more: object = {}) =>
  cluster.client.apply(types.MCPRemoteProxy, workload('MCPRemoteProxy', name, { ...REMOTE, ...more }, SPACE))

/** As a kubelet would: the pod of the proxy runs and is ready. */
async function runPod(proxy: string): Promise<void> {
  const selection = { namespace: SPACE, labelSelector: `app.kubernetes.io/instance=${proxy}` }
  const pod = await eventually(async () => {
    const [found] = (await cluster.client.list(CLUSTER_TYPES.Pod, selection)).items
    if (found === undefined) throw new Error('no pod yet')
    return found
  })
  const lastTransitionTime = new Date().toISOString().replace(/\.\d+/, '')
  const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True', lastTransitionTime }] }
  await cluster.client.merge(CLUSTER_TYPES.Pod, SPACE, pod.metadata.name, { status }, { subresource: 'status' })
}

async function inEachState(): Promise<Record<string, KubeObject>> {
  const { client } = cluster
  const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' }
  await client.apply(CLUSTER_TYPES.Namespace, namespaceObject(SPACE, labels))
  const states: Record<string, KubeObject> = {}
  await makeConfig('ready')
  states['config: ready'] = await isReady(() => getConfig('ready'), 'True/ConfigReady')
  await makeConfig('broken', BROKEN)
  states['config: not valid'] = await isReady(() => getConfig('broken'), 'False/ValidationFailed')
  await makeConfig('held')
  await makeProxy('holder', { externalAuthConfigRef: { name: 'held' } })
  states['proxy: pods on their way'] = await isReady(() => getProxy('holder'), 'False/ReplicasUnavailable')
  await client.remove(types.MCPExternalAuthConfig, SPACE, 'held')
  states['config: deleted, and referred to'] = await isReady(() => getConfig('held'), 'True/ConfigReady')
  await makeProxy('runs')
  await runPod('runs')
  states['proxy: ready'] = await isReady(() => getProxy('runs'), 'True/ProxyReady')
  await makeProxy('lonely', { externalAuthConfigRef: { name: 'nobody' } })
  states['proxy: its config is missing'] = await isReady(() => getProxy('lonely'), 'False/ExternalAuthConfigNotFound')
  const oidc = { type: 'inline', inline: { issuer: 'http://idp.example.com' } }
  await client.apply(types.MCPOIDCConfig, workload('MCPOIDCConfig', 'odd', oidc, SPACE))
  const getOidc = () => client.get(types.MCPOIDCConfig, SPACE, 'odd')
  states['callers: not valid'] = await isReady(getOidc, 'False/ValidationFailed')
  await makeProxy('called', { oidcConfig: undefined, oidcConfigRef: { name: 'odd', audience: 'mcp' } })
  states['proxy: its callers are not valid'] = await isReady(() => getProxy('called'), 'False/OIDCConfigRefInvalid')
  const image = { image: 'server', externalAuthConfigRef: { name: 'broken' } }
  await client.apply(types.MCPServer, workload('MCPServer', 'server', image, SPACE))
  const getServer = () => client.get(types.MCPServer, SPACE, 'server')
  states['server: its config is not valid'] = await isReady(getServer, 'False/ExternalAuthConfigInvalid')
  await makeProxy('open', { oidcConfig: undefined })
  states['proxy: not valid'] = await isReady(() => getProxy('open'), 'False/SpecInvalid')
  await makeProxy('privileged', { podTemplateSpec: { spec: { hostNetwork: true } } })
  states['proxy: pods that the cluster does not take'] = await isReady(
    () => getProxy('privileged'),
    'False/DeploymentFailing',
  )
  await cluster.operator.close()
  await makeProxy('runs', { image: 'mcp-extauth:next' })
  states['proxy: ready, then edited'] = await getProxy('runs')
  await makeConfig('new')
  states['config: not looked at yet'] = await getConfig('new')
  await makeProxy('new')
  states['proxy: not looked at yet'] = await getProxy('new')
  return states
}

test('what tools that wait make of each state', async () => {
  const states = await inEachState()
  const program = findProgram(GITOPSCHECK) ?? ''
  const { lua, exprs, hash } = documentedChecks()
  const directory = mkdtempSync(path.join(tmpdir(), 'extauth-gitops-'))
  try {
    const [script, file] = [path.join(directory, 'health.lua'), path.join(directory, 'exprs.json')]
    writeFileSync(script, lua)
    writeFileSync(file, JSON.stringify(exprs[0]))
    const input = Object.values(states)
      .map((object) => JSON.stringify(object))
      .join('\n')
    const output = execFileSync(program, [script, file], { encoding: 'utf8', input })
    const verdicts = output
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as GitopsVerdict)
    const found = Object.keys(states).map((name, at) => {
      const { argocd = '', flux = '', kstatus = '' } = verdicts[at] ?? {}
      return [name, { ready: readyOf(states[name] as KubeObject), verdict: { argocd, flux, kstatus } }] as const
    })
    expect(Object.fromEntries(found.map(([name, { verdict }]) => [name, verdict]))).toEqual(WANTED)
    const record = { checks: hash, states: Object.fromEntries(found) }
    if (process.env['EXTAUTH_RECORD'] === 'true')
      writeFileSync(GITOPS_RECORD_PATH, `${JSON.stringify(record, undefined, 2)}\n`)
    expect(record).toEqual(readGitopsRecord())
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}, 900_000)
