import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { freePort, type LabBackend, startLabBackend } from '../../lab/index.ts'
import type { KubeObject } from '../../src/kube/index.ts'
import { CLUSTER_TYPES } from '../../src/operator/index.ts'
import { extauth, type Running } from '../support/e2e/process.ts'
import { MODES } from '../support/lab/client-behaviours.ts'
import { eventually } from './support/control-plane.ts'
import { type Gateway, startGateway } from './support/gateway.ts'
import { installGatewayApi } from './support/gateway-api.ts'
import { type Internet, startInternet } from './support/internet.ts'
import { type Kubelet, openKubelet } from './support/kubelet.ts'
import { namespaceObject, types } from './support/operator-rig.ts'
import { CRDS, OTHER_GROUP, otherDefinition, others } from './support/other-operator.ts'
import { markReady, podsOf } from './support/pods.ts'
import { useCluster } from './support/use-cluster.ts'

// A proxy of another operator is moved over in the steps that docs/migration.md has, while clients call it through a gateway.
const SPACE = 'moving'
const EARLIER = 'mcp-tickets-remote-proxy'
const cluster = useCluster({ webhook: true })
const ports = new Map<string, number>()
let directory: string
let internet: Internet
let backend: LabBackend
let gateway: Gateway
let earlier: Running
let kubelet: Kubelet | undefined
let proxy: Running | undefined

const named = (apiVersion: string, kind: string, name: string, fields: object): KubeObject => ({
  apiVersion,
  kind,
  metadata: { name, namespace: SPACE },
  ...fields,
})
const theirs = (kind: string, name: string, spec: object): KubeObject =>
  named(`${OTHER_GROUP}/v1beta1`, kind, name, { spec })
const MANIFESTS = [
  theirs('MCPOIDCConfig', 'corp', { type: 'inline', inline: { issuer: 'https://login.example.com' } }),
  theirs('MCPExternalAuthConfig', 'token', {
    type: 'bearerToken',
    bearerToken: { tokenSecretRef: { name: 'token', key: 'token' } },
  }),
  theirs('MCPRemoteProxy', 'tickets', {
    remoteUrl: 'https://tickets.example.com/mcp',
    transport: 'streamable-http',
    proxyPort: 8080,
    oidcConfigRef: { name: 'corp', audience: 'tickets' },
    externalAuthConfigRef: { name: 'token' },
    podTemplateSpec: { spec: { containers: [{ name: 'toolhive', resources: { limits: { memory: '256Mi' } } }] } },
  }),
  named('gateway.networking.k8s.io/v1', 'HTTPRoute', 'tickets', {
    spec: { parentRefs: [{ name: 'public' }], rules: [{ backendRefs: [{ name: EARLIER, port: 8080 }] }] },
  }),
]

/** Objects of the other operator: they are removed with their owner. */
async function makeEarlier(owner: KubeObject): Promise<void> {
  const { apiVersion, kind, metadata } = owner
  const ownerReferences = [{ apiVersion, kind, name: metadata.name, uid: metadata.uid ?? '', controller: true }]
  const labels = { app: 'theirs' }
  const make = (version: string, of: string, name: string, spec: object): KubeObject => {
    const object = named(version, of, name, { spec })
    return { ...object, metadata: { ...object.metadata, ownerReferences } }
  }
  const containers = [{ name: 'toolhive', image: 'theirs' }]
  const template = { metadata: { labels }, spec: { containers } }
  await cluster.client.create(
    CLUSTER_TYPES.Deployment,
    make('apps/v1', 'Deployment', 'tickets', { selector: { matchLabels: labels }, template }),
  )
  await cluster.client.create(
    CLUSTER_TYPES.Service,
    make('v1', 'Service', EARLIER, { selector: labels, ports: [{ port: 8080 }] }),
  )
}

beforeAll(async () => {
  directory = mkdtempSync(path.join(tmpdir(), 'extauth-move-'))
  writeFileSync(path.join(directory, 'all.yaml'), MANIFESTS.map((one) => JSON.stringify(one)).join('\n---\n'))
  mkdirSync(path.join(directory, 'secrets/token'), { recursive: true })
  writeFileSync(path.join(directory, 'secrets/token/token'), 'of-the-backend')
  const { client, plane } = cluster
  internet = await startInternet(Number(new URL(plane.server).port))
  backend = await startLabBackend({ port: 0, mounts: {}, clock: { now: () => Date.now() } })
  await installGatewayApi(client)
  for (const kind of ['MCPOIDCConfig', 'MCPExternalAuthConfig', 'MCPRemoteProxy'] as const)
    await client.apply(CRDS, otherDefinition(others[kind], true))
  await client.apply(CLUSTER_TYPES.Namespace, namespaceObject(SPACE))
  const data = { token: btoa('of-the-backend') }
  await client.apply(CLUSTER_TYPES.Secret, named('v1', 'Secret', 'token', { data }))
  for (const object of MANIFESTS) {
    const type = object.kind === 'HTTPRoute' ? CLUSTER_TYPES.HTTPRoute : others[object.kind as 'MCPRemoteProxy']
    const made = await eventually(() => client.create(type, object))
    if (object.kind === 'MCPRemoteProxy') await makeEarlier(made)
  }
  ports.set(EARLIER, await freePort())
  // A proxy that runs the same manifests takes the part of theirs.
  const args = ['proxy', '--config', path.join(directory, 'all.yaml'), '--secrets-dir', path.join(directory, 'secrets')]
  const listen = ['--listen', `127.0.0.1:${ports.get(EARLIER)}`, '--admin', '127.0.0.1:0', '--api-group', OTHER_GROUP]
  earlier = extauth([...args, ...listen], { env: internet.env })
  await earlier.line('listening')
  gateway = await startGateway(client, SPACE, 'tickets', ports)
  await eventually(() => expect(gateway.service()).toBe(EARLIER))
}, 240_000)
afterAll(async () => {
  await gateway?.close()
  for (const running of [earlier, proxy]) running?.process.kill('SIGKILL')
  kubelet?.close()
  await backend?.close()
  await internet?.close()
  rmSync(directory, { recursive: true, force: true })
}, 60_000)

interface Traffic {
  readonly lost: string[]
  readonly calls: number
  /** Sessions that clients began again, because the new proxy did not know the one of the earlier proxy. */
  readonly begunAgain: string[]
}

/** Official clients that call until the end; on 404 for its session a client begins a new one, as MCP demands. */
async function traffic(over: AbortSignal): Promise<Traffic> {
  const headers = { authorization: `Bearer ${await internet.tokenFor('tickets')}` }
  const lost: string[] = []
  const begunAgain: string[] = []
  let calls = 0
  await Promise.all(
    Object.entries(MODES).map(async ([mode, connect]) => {
      const open = () => connect({ url: `${gateway.url}/mcp`, backend, headers })
      let connected = await open()
      const call = () => connected.call({ name: 'show_request' })
      const callAgain = async (error: unknown) => {
        if (!String(error).includes('unknown_session')) throw error
        begunAgain.push(mode)
        await connected.close()
        connected = await open()
        return call()
      }
      while (!over.aborted) {
        calls += 1
        await call()
          .catch(callAgain)
          .catch((error: unknown) => lost.push(`${mode}: ${String(error)}`))
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
      await connected.close()
    }),
  )
  return { lost, calls, begunAgain }
}

const since = async (count: number): Promise<void> => {
  const before = internet.arrived.length
  await eventually(() => expect(internet.arrived.length).toBeGreaterThan(before + count))
}

test('a running proxy moves over with no lost request', async () => {
  const { client } = cluster
  const over = new AbortController()
  const calling = traffic(over.signal)
  await since(10)

  // 1. Convert.
  const convert = extauth(['convert', path.join(directory, 'all.yaml')])
  expect(await convert.ended).toBe(0)
  // Reported above the route.
  expect(convert.stdout()).toMatch(new RegExp(`^#.*${EARLIER}.*tickets-extauth`, 'm'))
  const converted = parseAllDocuments(convert.stdout()).map((document) => document.toJS() as KubeObject)

  // 2. Apply the proxy beside the earlier one, and wait until it is ready.
  for (const object of converted)
    if (object.kind !== 'HTTPRoute')
      await eventually(() => client.apply(types[object.kind as 'MCPRemoteProxy'], object))
  const pods = await podsOf(client, SPACE, 'tickets')
  const [pod] = pods
  if (pod === undefined) throw new Error('no pod')
  kubelet = await openKubelet(client, pod, 'extauth')
  ports.set('tickets-extauth', await freePort())
  proxy = kubelet.start(
    ['--listen', `127.0.0.1:${ports.get('tickets-extauth')}`, '--admin', '127.0.0.1:0'],
    internet.env,
  )
  const { admin } = await proxy.line('listening')
  await eventually(async () => expect((await fetch(`${String(admin)}/readiness`)).status).toBe(200))
  await markReady(client, pods)
  await eventually(async () => {
    const { status } = await client.get(types.MCPRemoteProxy, SPACE, 'tickets')
    expect(JSON.stringify(status)).toContain('ProxyReady')
  })
  expect(gateway.service()).toBe(EARLIER)

  // 3. Apply the route.
  const route = converted.find(({ kind }) => kind === 'HTTPRoute')
  if (route === undefined) throw new Error('no route')
  await client.apply(CLUSTER_TYPES.HTTPRoute, route)
  await eventually(() => expect(gateway.service()).toBe('tickets-extauth'))
  await since(10)

  // 4. Delete the earlier proxy: what it owns goes with it, and nothing of the new one.
  await client.remove(others.MCPRemoteProxy, SPACE, 'tickets')
  // The garbage collector learns of new kinds every 30 s, and waits longer after a failed discovery.
  await eventually(
    () => expect(client.get(CLUSTER_TYPES.Service, SPACE, EARLIER)).rejects.toMatchObject({ status: 404 }),
    120_000,
  )
  await eventually(async () => {
    const { items } = await client.list(CLUSTER_TYPES.Pod, { namespace: SPACE, labelSelector: 'app=theirs' })
    expect(items).toEqual([])
  })
  earlier.process.kill('SIGTERM')
  expect(await earlier.ended).toBe(0)
  await since(10)

  over.abort()
  const { lost, calls, begunAgain } = await calling
  expect(lost).toEqual([])
  // The revision of 2026-07-28 has no sessions.
  expect(begunAgain.toSorted()).toEqual(['client 2.x (2025-11-25)', 'sdk 1.x (2025-11-25)'])
  expect(calls).toBeGreaterThan(50)
  await expect(client.get(CLUSTER_TYPES.Deployment, SPACE, 'tickets-extauth')).resolves.toBeDefined()
}, 240_000)
