import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import type { KubeObject } from '../../src/kube/index.ts'
import { CLUSTER_TYPES, ownTypes } from '../../src/operator/index.ts'
import { EXAMPLES, proxyOf, secretKeysIn } from '../support/operator/page-examples.ts'
import { eventually } from './support/control-plane.ts'
import { openKubelet } from './support/kubelet.ts'
import { GROUP, namespaceObject } from './support/operator-rig.ts'
import { markReady, podsOf } from './support/pods.ts'
import { useCluster } from './support/use-cluster.ts'

// The examples of the pages, applied as they are; a pod of each runs as a real process, and what that says of its readiness is
// what a kubelet would take.
const cluster = useCluster({ webhook: true, watchSecrets: true }, async ({ client }) => {
  const restricted = { 'pod-security.kubernetes.io/enforce': 'restricted' }
  for (const space of new Set(EXAMPLES.map(({ objects }) => proxyOf(objects).namespace)))
    await client.apply(CLUSTER_TYPES.Namespace, namespaceObject(space, restricted))
})

/** The report of a pod without a network, and the revision of its configuration. */
const EXPECTED_DETAILS = new Set(['providersWithoutKeys', 'revision', 'unreachable'])
const signingKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
const VALUES: Readonly<Record<string, string | Buffer>> = {
  hmac: randomBytes(32),
  seal: randomBytes(32),
  'signing-key': signingKey.export({ type: 'pkcs8', format: 'pem' }),
}
/** `namespace/name` of Secrets that an earlier example needed too. */
const made = new Set<string>()

/** As `kubectl create secret generic` does. */
const secretOf = (namespace: string, { name, keys }: ReturnType<typeof secretKeysIn>[number]): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, namespace },
  data: Object.fromEntries(keys.map((key) => [key, Buffer.from(VALUES[key] ?? 'a-value').toString('base64')])),
})

const typeFor = ({ apiVersion, kind }: KubeObject) =>
  ownTypes(GROUP, apiVersion.slice(GROUP.length + 1))[kind as keyof ReturnType<typeof ownTypes>]

const conditionOf = async (object: KubeObject, wanted: string): Promise<unknown> => {
  const found = await cluster.client.get(typeFor(object), object.metadata.namespace, object.metadata.name)
  const { conditions, observedGeneration } = found.status as {
    readonly conditions: readonly { readonly type: string }[]
    readonly observedGeneration?: number
  }
  expect(observedGeneration).toBe(found.metadata.generation)
  return conditions.find(({ type }) => type === wanted)
}

test.each(EXAMPLES)('$title: as it is on the page it is let in, serves, and is Ready', async ({ objects }) => {
  const { client } = cluster
  const { name, namespace, replicas } = proxyOf(objects)
  for (const object of objects) await client.apply(typeFor(object), object)
  const pods = await podsOf(client, namespace, name, replicas)
  for (const object of objects) {
    const missing = secretKeysIn([object]).filter((secret) => !made.has(`${namespace}/${secret.name}`))
    if (missing.length === 0) continue
    const said = { status: 'False', message: expect.stringContaining('missing') as string }
    await eventually(async () => expect(await conditionOf(object, 'SecretsResolved')).toMatchObject(said))
  }
  for (const secret of secretKeysIn(objects)) {
    await client.apply(CLUSTER_TYPES.Secret, secretOf(namespace, secret))
    made.add(`${namespace}/${secret.name}`)
  }

  const [pod] = pods
  if (pod === undefined) throw new Error('no pod')
  const kubelet = await openKubelet(client, pod, 'extauth')
  // In a pod, both ports are its own; here other tests may have them.
  const proxy = kubelet.start(['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'])
  try {
    const { admin } = (await proxy.line('listening')) as { admin: string }
    const readiness = await fetch(`${admin}/readiness`)
    const { detail = {} } = (await readiness.json()) as { detail?: object }
    // No server answers at the addresses of the page. Everything else is ready.
    expect([readiness.status, Object.keys(detail).filter((what) => !EXPECTED_DETAILS.has(what))]).toEqual([200, []])
    await markReady(client, pods)
    for (const object of objects) {
      const reason = object.kind === 'MCPRemoteProxy' ? { reason: 'ProxyReady' } : {}
      const ready = { status: 'True', ...reason }
      await eventually(async () => expect(await conditionOf(object, 'Ready')).toMatchObject(ready))
    }
    proxy.process.kill('SIGTERM')
    expect(await proxy.ended).toBe(0)
  } finally {
    proxy.process.kill('SIGKILL')
    kubelet.close()
  }
})
