import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { KubeClient, KubeObject } from '../../src/kube/index.ts'
import { CLUSTER_TYPES } from '../../src/operator/index.ts'
import { parseDocuments } from '../../src/load/index.ts'
import { eventually } from './support/control-plane.ts'
import { BEARER, config, GROUP, namespaceObject, runOperator, types, workload } from './support/operator-rig.ts'
import { useCluster } from './support/use-cluster.ts'

const cluster = useCluster()
let client: KubeClient
beforeAll(() => {
  client = cluster.client
})

const get = (name: string, namespace = 'default') => client.get(types.MCPExternalAuthConfig, namespace, name)
const conditions = (object: KubeObject): Record<string, { status: string; reason: string; message: string }> =>
  Object.fromEntries(
    (
      (
        object.status as
          { conditions?: { type: string; status: string; reason: string; message: string }[] } | undefined
      )?.conditions ?? []
    ).map((one) => [one.type, one]),
  )

const SPECS: readonly (readonly [string, object])[] = [
  ['unauthenticated', { type: 'unauthenticated' }],
  ['bearerToken', BEARER],
  [
    'headerInjection',
    { type: 'headerInjection', headerInjection: { headerName: 'X-Key', valueSecretRef: { name: 's', key: 'k' } } },
  ],
  [
    'tokenExchange',
    { type: 'tokenExchange', tokenExchange: { tokenUrl: 'https://idp.example.com/token', audience: 'a' } },
  ],
  [
    'cloudSts',
    { type: 'cloudSts', cloudSts: { region: 'us-east-1', fallbackRoleArn: 'arn:aws:iam::123456789012:role/r' } },
  ],
  ['upstreamInject', { type: 'upstreamInject', upstreamInject: { providerName: 'github' } }],
  [
    'embeddedAuthServer',
    {
      type: 'embeddedAuthServer',
      embeddedAuthServer: {
        issuer: 'https://mcp.example.com',
        upstreamProviders: [
          { name: 'idp', type: 'oidc', oidcConfig: { issuerUrl: 'https://idp.example.com', clientId: 'c' } },
        ],
      },
    },
  ],
]

describe('MCPExternalAuthConfig', () => {
  test.each(SPECS)(
    '%s becomes valid within two seconds, with the hash that the command line prints',
    async (type, spec) => {
      const name = `valid-${type.toLowerCase()}`
      const created = await client.apply(types.MCPExternalAuthConfig, config(name, 'default', spec))
      const object = await eventually(async () => {
        const found = await get(name)
        expect(conditions(found)['Valid']?.status).toBe('True')
        return found
      }, 2_000)
      const text = JSON.stringify({ ...config(name, 'default', spec), metadata: { name, namespace: 'default' } })
      const [loaded] = parseDocuments([{ path: 'c.json', text }]).auths
      expect(object.status).toMatchObject({
        observedGeneration: created.metadata.generation,
        configHash: loaded?.configHash,
      })
    },
  )

  test('an edit is followed; what the webhook would have refused is Valid=False with the path', async () => {
    await client.apply(types.MCPExternalAuthConfig, config('edited'))
    const spec = {
      type: 'cloudSts',
      cloudSts: {
        region: 'us-east-1',
        roleMappings: [{ roleArn: 'arn:aws:iam::123456789012:role/r', matcher: 'claims.' }],
      },
    }
    // The operator writes meanwhile, so a version may be too old.
    const edited = await eventually(async () =>
      client.update(types.MCPExternalAuthConfig, { ...(await get('edited')), spec }),
    )
    await eventually(async () => {
      const found = await get('edited')
      expect(conditions(found)['Valid']).toMatchObject({ status: 'False', reason: 'ValidationFailed' })
      expect(conditions(found)['Valid']?.message).toContain('spec.cloudSts.roleMappings[0].matcher')
      expect(found.status).toMatchObject({ observedGeneration: edited.metadata.generation })
    }, 5_000)
  })

  test('references of every kind and field are counted, each once, and never from another namespace', async () => {
    await client.apply(CLUSTER_TYPES.Namespace, namespaceObject('elsewhere'))
    await client.apply(types.MCPExternalAuthConfig, config('shared'))
    const ref = { externalAuthConfigRef: { name: 'shared' } }
    const remote = { remoteUrl: 'https://api.example.com/mcp', ...ref }
    await client.apply(types.MCPRemoteProxy, workload('MCPRemoteProxy', 'same', remote))
    await client.apply(
      types.MCPServer,
      workload('MCPServer', 'same', { authServerRef: { kind: 'MCPExternalAuthConfig', name: 'shared' } }),
    )
    await client.apply(types.MCPServerEntry, workload('MCPServerEntry', 'entry', remote))
    await client.apply(
      types.VirtualMCPServer,
      workload('VirtualMCPServer', 'virtual', { outgoingAuth: { default: ref, backends: { b: ref } } }),
    )
    await client.apply(types.MCPServerEntry, workload('MCPServerEntry', 'foreign', remote, 'elsewhere'))
    await eventually(async () => {
      expect((await get('shared')).status).toMatchObject({
        referencingWorkloads: [
          { kind: 'MCPRemoteProxy', name: 'same' },
          { kind: 'MCPServer', name: 'same' },
          { kind: 'MCPServerEntry', name: 'entry' },
          { kind: 'VirtualMCPServer', name: 'virtual' },
        ],
      })
    }, 5_000)
    await client.remove(types.VirtualMCPServer, 'default', 'virtual')
    await eventually(async () => {
      expect((await get('shared')).status).toHaveProperty('referencingWorkloads.length', 3)
    }, 5_000)
  })

  test('a deletion waits for the last reference, says so once, and ends within two seconds of it', async () => {
    await client.apply(types.MCPExternalAuthConfig, config('held'))
    const ref = { remoteUrl: 'https://api.example.com', externalAuthConfigRef: { name: 'held' } }
    await client.apply(types.MCPServerEntry, workload('MCPServerEntry', 'holder', ref))
    await eventually(async () => expect((await get('held')).status).toHaveProperty('referencingWorkloads.length', 1))
    await client.remove(types.MCPExternalAuthConfig, 'default', 'held')
    await eventually(async () => {
      expect(conditions(await get('held'))['DeletionBlocked']).toMatchObject({
        status: 'True',
        reason: 'ReferencedByWorkloads',
        message: expect.stringContaining('MCPServerEntry/holder') as string,
      })
    })
    await client.remove(types.MCPServerEntry, 'default', 'holder')
    await eventually(() => expect(get('held')).rejects.toMatchObject({ status: 404 }), 2_000)
    await cluster.operator.idle()
    const events = await client.list(CLUSTER_TYPES.Event, { namespace: 'default' })
    const blocked = events.items.filter((event) => event['reason'] === 'ReferencedByWorkloads')
    expect(blocked).toHaveLength(1)
  })

  test('a namespace that ends takes its configs along, referenced or not', async () => {
    await client.apply(CLUSTER_TYPES.Namespace, namespaceObject('ending'))
    await client.apply(types.MCPExternalAuthConfig, config('c', 'ending'))
    const ref = { remoteUrl: 'https://api.example.com', externalAuthConfigRef: { name: 'c' } }
    await client.apply(types.MCPServerEntry, {
      ...workload('MCPServerEntry', 'e', ref, 'ending'),
      metadata: { name: 'e', namespace: 'ending', finalizers: ['example.com/stays'] },
    })
    await eventually(async () => expect((await get('c', 'ending')).metadata.finalizers).toHaveLength(1))
    await client.remove(CLUSTER_TYPES.Namespace, undefined, 'ending')
    await eventually(() => expect(get('c', 'ending')).rejects.toMatchObject({ status: 404 }), 20_000)
    await client.merge(types.MCPServerEntry, 'ending', 'e', { metadata: { finalizers: null } })
  })
})

describe('writes', () => {
  afterEach(() => cluster.operator.idle())

  test('nothing is written while nothing changes', async () => {
    await client.apply(types.MCPExternalAuthConfig, config('quiet'))
    await eventually(async () => expect(conditions(await get('quiet'))['Valid']?.status).toBe('True'))
    const version = (await get('quiet')).metadata.resourceVersion
    await new Promise((resolve) => setTimeout(resolve, 3_000))
    expect((await get('quiet')).metadata.resourceVersion).toBe(version)
  })

  test('a second operator waits; after the first is released it acts within three seconds', async () => {
    const first = cluster.operator
    const second = runOperator(client)
    await first.close()
    cluster.operator = await second
    await client.apply(types.MCPExternalAuthConfig, config('by-the-second'))
    await eventually(async () => expect(conditions(await get('by-the-second'))['Valid']?.status).toBe('True'), 3_000)
  }, 90_000)
})

test('the group of the objects is the configured one', () => {
  expect(Object.values(types).every(({ group }) => group === GROUP)).toBe(true)
})
