import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import type { KubeObject } from '../../src/kube/index.ts'
import { CLUSTER_TYPES, ownTypes } from '../../src/operator/index.ts'
import { EXAMPLES, proxyOf, secretKeysIn } from '../operator/page-examples.ts'
import { eventually } from './support/control-plane.ts'
import { openKubelet } from './support/kubelet.ts'
import { GROUP, namespaceObject } from './support/operator-rig.ts'
import { markReady, podsOf } from './support/pods.ts'
import { useCluster } from './support/use-cluster.ts'

// The examples of docs/kubernetes.md, applied as they are; their pods run as real processes, and what those say of
// their readiness is what the kubelet would take.
const SPACE = 'mcp'
const cluster = useCluster({ webhook: true, watchSecrets: true, restrictPodTemplate: true }, async ({ client }) => {
  const restricted = { 'pod-security.kubernetes.io/enforce': 'restricted' }
  await client.apply(CLUSTER_TYPES.Namespace, namespaceObject(SPACE, restricted))
})

const signingKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
const VALUES: Readonly<Record<string, string | Buffer>> = {
  hmac: randomBytes(32),
  'signing-key': signingKey.export({ type: 'pkcs8', format: 'pem' }),
}

/** As `kubectl create secret generic` does. */
const secretOf = ({ name, keys }: { readonly name: string; readonly keys: readonly string[] }): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, namespace: SPACE },
  data: Object.fromEntries(keys.map((key) => [key, Buffer.from(VALUES[key] ?? 'a-value').toString('base64')])),
})

const typeFor = ({ apiVersion, kind }: KubeObject) =>
  ownTypes(GROUP, apiVersion.slice(GROUP.length + 1))[kind as 'MCPExternalAuthConfig' | 'MCPRemoteProxy']

const conditionOf = async (object: KubeObject, wanted: string): Promise<unknown> => {
  const { status } = await cluster.client.get(typeFor(object), SPACE, object.metadata.name)
  const { conditions } = status as { conditions: readonly { readonly type: string }[] }
  return conditions.find(({ type }) => type === wanted)
}

test.each(EXAMPLES)('$title: as it is on the page it is let in, serves, and is Ready', async ({ objects }) => {
  const { client } = cluster
  const { name } = proxyOf(objects)
  for (const object of objects) await client.create(typeFor(object), object)
  const [pod] = await podsOf(client, SPACE, name)
  if (pod === undefined) throw new Error('no pod')
  const secrets = secretKeysIn(objects)
  for (const object of objects) {
    if (secretKeysIn([object]).length === 0) continue
    const missing = { status: 'False', message: expect.stringContaining('missing') as string }
    await eventually(async () => expect(await conditionOf(object, 'SecretsResolved')).toMatchObject(missing))
  }
  for (const secret of secrets) await client.create(CLUSTER_TYPES.Secret, secretOf(secret))

  const kubelet = await openKubelet(client, pod, 'extauth')
  // In a pod, both ports are its own; here other tests may have them.
  const proxy = kubelet.start(['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'])
  try {
    const { admin } = (await proxy.line('listening')) as { admin: string }
    const readiness = await fetch(`${admin}/readiness`)
    const { detail = {} } = (await readiness.json()) as { detail?: object }
    // Nobody answers at the addresses of the page: keys of providers are not there yet, and nothing else is wrong.
    expect([readiness.status, Object.keys(detail).filter((what) => what !== 'providersWithoutKeys')]).toEqual([200, []])
    await markReady(client, [pod])
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
