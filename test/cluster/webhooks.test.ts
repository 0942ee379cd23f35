import { beforeAll, describe, expect, test } from 'vitest'
import type { KubeClient, KubeObject } from '../../src/kube/index.ts'
import { CLUSTER_TYPES, ownTypes, podKeys } from '../../src/operator/index.ts'
import { reviewRemoteProxy } from '../../src/operator/remote-proxy/snapshot.ts'
import { formatProblem } from '../../src/operator/object-rules.ts'
import { parseObjects } from '../../src/load/index.ts'
import { type JudgedObject, judgedObjects } from '../support/load/publish/verdicts/objects.ts'
import { openRecord } from '../support/load/publish/verdicts/recorded.ts'
import { eventually } from './support/control-plane.ts'
import { caIsBackAfter } from './support/lost-ca.ts'
import { anonymousCallers, config, GROUP, namespaceObject, types, workload } from './support/operator-rig.ts'
import { useCluster } from './support/use-cluster.ts'

const keys = podKeys(GROUP)
const SETTINGS = { apiGroup: GROUP, image: 'x', restrictPodTemplate: false, secretsByLabel: false }
const verdictOf = openRecord()
const versionOf = ({ apiVersion }: KubeObject): string => apiVersion.slice(apiVersion.indexOf('/') + 1)
const nameOf = (object: Readonly<Record<string, unknown>>): string =>
  (object['metadata'] as { name?: string } | undefined)?.name ?? ''
const cluster = useCluster({ webhook: true }, async ({ client: admin }) => {
  // A webhook configuration is active once a rejection arrives.
  await eventually(async () => {
    const matcher = { roleArn: 'arn:aws:iam::123456789012:role/r', matcher: 'claims.' }
    const spec = { type: 'cloudSts', cloudSts: { region: 'us-east-1', roleMappings: [matcher] } }
    const refused = admin.create(types.MCPExternalAuthConfig, config('probe', 'default', spec), { dryRun: true })
    await expect(refused).rejects.toMatchObject({ message: expect.stringContaining('denied the request') as string })
  })
})
let client: KubeClient
beforeAll(() => {
  client = cluster.client
})

describe('validation', () => {
  test.each([
    ['cloudSts without a role', { type: 'cloudSts', cloudSts: { region: 'us-east-1' } }, 'spec.cloudSts'],
    [
      'a matcher that is no CEL',
      {
        type: 'cloudSts',
        cloudSts: {
          region: 'us-east-1',
          roleMappings: [{ roleArn: 'arn:aws:iam::123456789012:role/r', matcher: 'claims.' }],
        },
      },
      'spec.cloudSts.roleMappings[0].matcher',
    ],
    [
      'a header with a control character',
      {
        type: 'embeddedAuthServer',
        embeddedAuthServer: {
          issuer: 'https://a.example.com',
          upstreamProviders: [
            {
              name: 'x',
              type: 'oauth2',
              oauth2Config: {
                authorizationEndpoint: 'https://x.example.com/a',
                tokenEndpoint: 'https://x.example.com/t',
                clientId: 'c',
                userInfo: { endpointUrl: 'https://x.example.com/u', additionalHeaders: { 'X-A': 'a\r\nb' } },
              },
            },
          ],
        },
      },
      'additionalHeaders',
    ],
  ])('%s is refused with the words of validate', async (_what, spec, where) => {
    const refused = client.create(types.MCPExternalAuthConfig, config('refused', 'default', spec))
    await expect(refused).rejects.toMatchObject({ message: expect.stringContaining(where) as string })
  })

  test('the whole table gets the verdicts of validate, with the same messages beyond the definitions', async () => {
    const objects = judgedObjects()
      .filter(({ kind, object }) => verdictOf(kind, object) && nameOf(object) !== '')
      .filter(({ object }, index) => index % 2 === 0 || parseObjects([object]).problems.length > 0)
    const wrong: string[] = []
    const decide = async ({ kind, what, object }: JudgedObject): Promise<void> => {
      const { uid: _uid, resourceVersion: _version, ...metadata } = object['metadata'] as KubeObject['metadata']
      const sent = { ...object, metadata: { ...metadata, namespace: 'default' } } as KubeObject
      const alone = kind === 'MCPRemoteProxy' ? reviewRemoteProxy(sent, SETTINGS).problems : []
      const expected = [...parseObjects([object]).problems.map(formatProblem), ...alone]
      const said = await client.create(ownTypes(GROUP, versionOf(sent))[kind], sent, { dryRun: true }).then(
        () => '',
        (error: unknown) => (error as Error).message,
      )
      const isRight = expected.length === 0 ? said === '' : expected.every((words) => said.includes(words))
      if (!isRight) wrong.push(`${what}: expected ${expected.join('; ') || 'no refusal'}, got ${said}`)
    }
    for (let at = 0; at < objects.length; at += 20) await Promise.all(objects.slice(at, at + 20).map(decide))
    expect(wrong).toEqual([])
    expect(objects.length).toBeGreaterThan(500)
    expect(objects.filter(({ object }) => parseObjects([object]).problems.length > 0).length).toBeGreaterThan(20)
  }, 300_000)

  test('configs of 600 KB in one namespace delay no other one', async () => {
    await client.create(CLUSTER_TYPES.Namespace, namespaceObject('calm'))
    const mappings = Array.from({ length: 60 }, (_, at) => ({
      roleArn: 'arn:aws:iam::123456789012:role/r',
      matcher: `claims.a == "${at}"${' '.repeat(9_900)}x`,
    }))
    const spec = { type: 'cloudSts', cloudSts: { region: 'us-east-1', roleMappings: mappings } }
    const heavy = Array.from({ length: 5 }, (_, at) =>
      client.create(types.MCPExternalAuthConfig, config(`heavy-${at}`, 'default', spec), { dryRun: true }).then(
        () => 'let in',
        () => 'refused',
      ),
    )
    for (let at = 0; at < 5; at++)
      await client.create(types.MCPExternalAuthConfig, config(`calm-${at}`, 'calm'), { dryRun: true })
    expect(new Set(await Promise.all(heavy))).toEqual(new Set(['refused']))
  })

  test('an object with a generated name is validated by that name', async () => {
    const generated = { ...config('x'), metadata: { generateName: 'made-', namespace: 'default', name: '' } }
    const created = await client.create(types.MCPExternalAuthConfig, generated, { dryRun: true })
    expect(created.metadata.name).toMatch(/^made-/)
  })

  test('a reference that does not resolve yet is a warning, not a refusal', async () => {
    const spec = { remoteUrl: 'https://api.example.com', externalAuthConfigRef: { name: 'not-yet' } }
    const created = await client.create(types.MCPServerEntry, workload('MCPServerEntry', 'early', spec))
    expect(created.metadata.uid).toBeDefined()
  })

  test('finalizers and labels of a stored invalid object can be changed while its spec stays', async () => {
    await client.create(types.MCPExternalAuthConfig, config('aging'))
    await client.merge(types.MCPExternalAuthConfig, 'default', 'aging', { metadata: { labels: { a: 'b' } } })
    const broken = { spec: { type: 'bearerToken', bearerToken: { tokenSecretRef: { name: 'token', key: '..bad' } } } }
    await expect(client.merge(types.MCPExternalAuthConfig, 'default', 'aging', broken)).rejects.toMatchObject({
      status: expect.any(Number) as number,
    })
  })
})

const pod = (name: string, annotations?: Record<string, string>, more: object = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name,
    namespace: 'inject',
    labels: { [keys.inject]: 'true' },
    ...(annotations === undefined ? {} : { annotations }),
  },
  spec: {
    securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [
      {
        name: 'server',
        image: 'x',
        securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
      },
    ],
    ...more,
  },
})
const ASKED = { [keys.externalAuth]: 'sidecar', [keys.targetPort]: '3000', [keys.callers]: 'callers' }

describe('injection', () => {
  beforeAll(async () => {
    await client.apply(
      CLUSTER_TYPES.Namespace,
      namespaceObject('inject', { 'pod-security.kubernetes.io/enforce': 'restricted' }),
    )
    await client.apply(types.MCPExternalAuthConfig, config('sidecar', 'inject'))
    await client.apply(CLUSTER_TYPES.ConfigMap, anonymousCallers('inject'))
    const logins = { type: 'upstreamInject', upstreamInject: { providerName: 'github' } }
    await client.apply(types.MCPExternalAuthConfig, config('of-logins', 'inject', logins))
    await eventually(async () => {
      const found = await client.get(CLUSTER_TYPES.ServiceAccount, 'inject', 'default')
      expect(found.metadata.name).toBe('default')
    })
  })

  test('a pod that asks gets the proxy as its first init container, and passes the restricted standard', async () => {
    const init = [
      {
        name: 'earlier',
        image: 'x',
        securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
      },
    ]
    const created = await eventually(() =>
      client.create(CLUSTER_TYPES.Pod, pod('asks', ASKED, { ...(pod('x').spec as object), initContainers: init })),
    )
    const spec = created.spec as {
      initContainers: { name: string; restartPolicy?: string; args?: string[] }[]
      volumes: { name: string }[]
    }
    expect(spec.initContainers.map(({ name }) => name)).toEqual(['extauth', 'earlier'])
    expect(spec.initContainers[0]).toMatchObject({
      restartPolicy: 'Always',
      args: expect.arrayContaining(['--target', 'http://127.0.0.1:3000']) as string[],
    })
    expect(spec.volumes.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['extauth-config', 'extauth-callers', 'extauth-secret-token']),
    )
    // The kubelet waits for it; its owner is the config.
    const map = await eventually(() => client.get(CLUSTER_TYPES.ConfigMap, 'inject', 'extauth-inject-sidecar'))
    expect(map.metadata.ownerReferences?.[0]).toMatchObject({ kind: 'MCPExternalAuthConfig', name: 'sidecar' })
    expect(JSON.stringify(map.data)).toContain('bearerToken')
  })

  test('what was injected already comes out as it went in', async () => {
    const first = await client.create(CLUSTER_TYPES.Pod, pod('twice', ASKED), { dryRun: true })
    const { resourceVersion: _v, uid: _u, creationTimestamp: _c, managedFields: _m, ...metadata } = first.metadata
    const again = await client.create(
      CLUSTER_TYPES.Pod,
      { apiVersion: 'v1', kind: 'Pod', metadata, spec: first.spec },
      { dryRun: true },
    )
    expect(again.spec).toEqual(first.spec)
  })

  test.each([
    ['no annotations', undefined, keys.externalAuth],
    ['no target port', { ...ASKED, [keys.targetPort]: '' }, keys.targetPort],
    ['a config that does not exist', { ...ASKED, [keys.externalAuth]: 'nobody' }, 'which does not exist in namespace'],
    ['the same port twice', { ...ASKED, [keys.listenPort]: '3000' }, 'the same port'],
    ['a config whose callers log in at a proxy', { ...ASKED, [keys.externalAuth]: 'of-logins' }, 'authServerRef'],
  ])('a pod with %s is rejected with the reason', async (_what, annotations, message) => {
    const refused = client.create(CLUSTER_TYPES.Pod, pod('refused', annotations), { dryRun: true })
    await expect(refused).rejects.toMatchObject({ message: expect.stringContaining(message) as string })
  })

  const container = (more: object) => ({ ...(pod('x').spec as { containers: object[] }).containers[0], ...more })
  test.each([
    [
      'an init container with a reserved name',
      { initContainers: [container({ name: 'extauth' })] },
      'container name extauth',
    ],
    ['a container with a reserved name', { containers: [container({ name: 'extauth' })] }, 'container name extauth'],
    [
      'a volume with a reserved name',
      { volumes: [{ name: 'extauth-secret-token', emptyDir: {} }] },
      'extauth-secret-token',
    ],
    ['the port of our probes', { containers: [container({ ports: [{ containerPort: 8081 }] })] }, 'port 8081'],
    [
      'our port in another sidecar',
      { initContainers: [container({ name: 'other', restartPolicy: 'Always', ports: [{ containerPort: 8080 }] })] },
      'port 8080',
    ],
    ['Windows', { os: { name: 'windows' } }, 'windows'],
  ])('a pod with %s is refused, and nothing of it is replaced', async (_what, more, message) => {
    const refused = client.create(CLUSTER_TYPES.Pod, pod('refused', ASKED, more), { dryRun: true })
    await expect(refused).rejects.toMatchObject({ message: expect.stringContaining(message) as string })
  })

  test('a pod may come in the moment after its config', async () => {
    for (let at = 0; at < 20; at++) {
      await client.create(types.MCPExternalAuthConfig, config(`fresh-${at}`, 'inject'))
      const asked = pod('fresh', { ...ASKED, [keys.externalAuth]: `fresh-${at}` })
      const created = await client.create(CLUSTER_TYPES.Pod, asked, { dryRun: true })
      expect(created.spec).toHaveProperty('initContainers')
    }
  })

  test('pods that do not ask are left alone', async () => {
    const plain = { ...pod('plain', ASKED), metadata: { name: 'plain', namespace: 'inject', annotations: ASKED } }
    const created = await client.create(CLUSTER_TYPES.Pod, plain, { dryRun: true })
    expect(created.spec).not.toHaveProperty('initContainers')
  })
})

test.each([CLUSTER_TYPES.ValidatingWebhookConfiguration, CLUSTER_TYPES.MutatingWebhookConfiguration])(
  'a $kind that lost its CA has it again within a second',
  async (type) => {
    const tookMs: number[] = []
    for (let time = 0; time < 5; time++) tookMs.push(await caIsBackAfter(cluster, type))
    // The median, for a machine that is busy meanwhile. Who only looks each half minute takes ten times that.
    expect(tookMs.sort((one, other) => one - other)[2]).toBeLessThan(1_000)
  },
  400_000,
)
