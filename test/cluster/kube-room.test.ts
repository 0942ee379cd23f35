import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import {
  createInformer,
  electLeader,
  type Informer,
  type KubeConnection,
  KubeError,
  type KubeObject,
  openKubeConnection,
  readKubeconfig,
  type ResourceType,
} from '../../src/kube/index.ts'
import { type ControlPlane, eventually, startControlPlane } from './support/control-plane.ts'

const CONFIG_MAPS: ResourceType = {
  group: '',
  version: 'v1',
  plural: 'configmaps',
  kind: 'ConfigMap',
  isNamespaced: true,
}
const log = { debug() {}, info() {}, warn() {}, error() {} }

let plane: ControlPlane
let connection: KubeConnection

const configMap = (name: string, data: Record<string, string>): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'default' },
  data,
})

beforeAll(async () => {
  plane = await startControlPlane({ controllers: false })
  const settings = readKubeconfig(parse(readFileSync(plane.kubeconfigPath, 'utf8')), plane.kubeconfigPath)
  connection = openKubeConnection({ settings, fieldManager: 'extauth-test', userAgent: 'extauth-test', log })
}, 180_000)

afterAll(async () => {
  await connection?.close()
  await plane?.close()
}, 60_000)

const follow = (
  onChange: (key: string, before: KubeObject | undefined, after: KubeObject | undefined) => void,
  restarts: string[] = [],
): Informer =>
  createInformer({
    client: connection.client,
    type: CONFIG_MAPS,
    selection: { namespace: 'default' },
    onChange,
    onRestart: (reason) => restarts.push(reason),
    log,
  })

test('an apply creates, applies again without a change, and a delete of what is gone is fine', async () => {
  const { client } = connection
  const first = await client.apply(CONFIG_MAPS, configMap('applied', { a: '1' }))
  const again = await client.apply(CONFIG_MAPS, configMap('applied', { a: '1' }))
  expect(again.metadata.resourceVersion).toBe(first.metadata.resourceVersion)
  await client.remove(CONFIG_MAPS, 'default', 'applied')
  await client.remove(CONFIG_MAPS, 'default', 'applied')
  await expect(client.get(CONFIG_MAPS, 'default', 'applied')).rejects.toMatchObject({ status: 404, reason: 'NotFound' })
})

test('a refusal of the server carries its status, reason and message', async () => {
  const refused = connection.client.create(CONFIG_MAPS, configMap('Not a name', {}))
  await expect(refused).rejects.toBeInstanceOf(KubeError)
  await expect(refused).rejects.toMatchObject({ status: 422, reason: 'Invalid' })
})

test('a collection of more than a page is read whole', async () => {
  const { client } = connection
  const names = Array.from({ length: 620 }, (_, index) => `many-${index}`)
  for (let at = 0; at < names.length; at += 40)
    await Promise.all(names.slice(at, at + 40).map((name) => client.apply(CONFIG_MAPS, configMap(name, {}))))
  const page = await client.list(CONFIG_MAPS, { namespace: 'default' })
  expect(page.items.filter(({ metadata }) => metadata.name.startsWith('many-'))).toHaveLength(620)
  expect(page.items[0]).toMatchObject({ apiVersion: 'v1', kind: 'ConfigMap' })
  const metadata = await client.list(CONFIG_MAPS, { namespace: 'default', metadataOnly: true })
  expect(metadata.items.every((item) => item['data'] === undefined)).toBe(true)
}, 60_000)

test('an informer follows additions, changes and deletions', async () => {
  const events: string[] = []
  const informer = follow((key, before, after) =>
    events.push(`${key} ${before === undefined ? '-' : '+'}${after === undefined ? '-' : '+'}`),
  )
  try {
    await informer.synced
    const { client } = connection
    await client.apply(CONFIG_MAPS, configMap('followed', { a: '1' }))
    await client.apply(CONFIG_MAPS, configMap('followed', { a: '2' }))
    await client.remove(CONFIG_MAPS, 'default', 'followed')
    const seen = (): string[] => events.filter((event) => event.startsWith('default/followed '))
    await eventually(() =>
      expect(seen()).toEqual(['default/followed -+', 'default/followed ++', 'default/followed +-']),
    )
  } finally {
    informer.close()
  }
})

test('an informer goes on after the API server was killed and started again, and misses nothing', async () => {
  const restarts: string[] = []
  const informer = follow(() => {}, restarts)
  try {
    await informer.synced
    await plane.stop('kube-apiserver')
    await eventually(() => expect(informer.problem).toBeDefined())
    await plane.start('kube-apiserver')
    await connection.client.apply(CONFIG_MAPS, configMap('after-the-restart', {}))
    await eventually(() => expect(informer.get('default/after-the-restart')).toBeDefined(), 60_000)
    expect(informer.problem).toBeUndefined()
    expect(restarts).toContain('lost')
  } finally {
    informer.close()
  }
}, 240_000)

test('of two candidates one leads; after its release the other one does within three seconds', async () => {
  const leaders: string[] = []
  const candidate = (identity: string) =>
    electLeader({
      client: connection.client,
      namespace: 'default',
      name: 'elected',
      identity,
      onAcquired: () => leaders.push(identity),
      onLost: () => leaders.push(`lost ${identity}`),
      log,
    })
  const first = candidate('first')
  await eventually(() => expect(first.isLeader).toBe(true))
  const second = candidate('second')
  try {
    await new Promise((resolve) => setTimeout(resolve, 2500))
    expect(second.isLeader).toBe(false)
    const releasedAt = Date.now()
    await first.release()
    expect(first.isLeader).toBe(false)
    await eventually(() => expect(second.isLeader).toBe(true), 3000)
    expect(Date.now() - releasedAt).toBeLessThan(3500)
    expect(leaders).toEqual(['first', 'second'])
  } finally {
    await second.release()
  }
}, 60_000)
