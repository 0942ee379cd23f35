import { afterEach, describe, expect, test } from 'vitest'
import { createFakeCluster } from '../../support/operator/fake-cluster.ts'
import { conditionsOf, object, statusOf } from '../../support/operator/objects.ts'
import {
  fewTools,
  inlineProvider,
  oidcConfigRef,
  telemetryConfigRef,
  toolConfigRef,
  traces,
} from '../../support/operator/shared-configs.ts'
import { closeAll, type Closers, startController } from '../../support/operator/start-controller.ts'

// Common behavior of MCPOIDCConfig, MCPTelemetryConfig and MCPToolConfig in a cluster: their status, conditions of their workloads when
// invalid, and their deletion.
const closers: Closers = []
afterEach(() => closeAll(closers))

const KINDS = [
  {
    kind: 'MCPOIDCConfig' as const,
    name: 'corp',
    ref: { oidcConfigRef },
    ofVirtual: { incomingAuth: { type: 'oidc', oidcConfigRef } },
    ofEntry: {},
    ofProxy: {},
    valid: inlineProvider(),
    invalid: inlineProvider({ issuer: 'http://idp.example.com' }),
    finalizer: 'extauth.dev/oidc-references',
    condition: 'OIDCConfigRef',
    hash: 'oidcConfigHash',
  },
  {
    kind: 'MCPTelemetryConfig' as const,
    name: 'traces',
    ref: { telemetryConfigRef },
    ofVirtual: { incomingAuth: { type: 'anonymous' }, telemetryConfigRef },
    ofEntry: {},
    ofProxy: { auth: { mode: 'anonymous' } },
    valid: traces(),
    invalid: traces({ insecure: true }),
    finalizer: 'extauth.dev/telemetry-references',
    condition: 'TelemetryConfigRef',
    hash: 'telemetryConfigHash',
  },
  {
    kind: 'MCPToolConfig' as const,
    name: 'few',
    ref: { toolConfigRef },
    ofVirtual: undefined,
    ofEntry: { toolConfigRef },
    ofProxy: { auth: { mode: 'anonymous' } },
    valid: fewTools(),
    invalid: fewTools({ toolsFilter: ['get_*'] }),
    finalizer: 'extauth.dev/tool-references',
    condition: 'ToolConfigRef',
    hash: 'toolConfigHash',
  },
]

describe.each(KINDS)('an $kind', ({ kind, name, ref, ofVirtual, ofEntry, ofProxy, valid, invalid, ...says }) => {
  const second =
    ofVirtual === undefined
      ? object('MCPServerEntry', 'v', { remoteUrl: 'https://api.example.com/mcp', ...ofEntry })
      : object('VirtualMCPServer', 'v', ofVirtual)
  const referring = [object('MCPServer', 's', { image: 'x', ...ref }), second]
  const auth = object('MCPExternalAuthConfig', name, { type: 'unauthenticated' })
  const proxy = object('MCPRemoteProxy', 'p', {
    remoteUrl: 'https://api.example.com/mcp',
    externalAuthConfigRef: { name },
    ...ofProxy,
    ...ref,
  })

  test('says in its status its hash and who refers to it, and waits for them when it is deleted', async () => {
    const cluster = createFakeCluster()
    for (const one of [valid, ...referring]) cluster.put(one)
    const { observed } = await startController(cluster, closers)
    const config = () => observed.shared(kind, 'n', name)
    const stored = config()
    if (stored === undefined) throw new Error('it is there')
    expect(stored.metadata.finalizers).toEqual([says.finalizer])
    expect(statusOf(stored)).toMatchObject({
      configHash: expect.stringMatching(/^[0-9a-f]+$/) as string,
      referenceCount: 2,
      referencingWorkloads: [
        { kind: 'MCPServer', name: 's' },
        { kind: second.kind, name: 'v' },
      ],
    })
    expect(conditionsOf(stored)).toContain('Valid True ValidationSucceeded')
    expect(conditionsOf(observed.workload('MCPServer', 'n', 's'))).toContain(
      `${says.condition}Validated True ${says.condition}Valid`,
    )
    cluster.put({ ...stored, metadata: { ...stored.metadata, deletionTimestamp: '2026-11-22T10:00:00Z' } })
    await expect.poll(() => conditionsOf(config())).toContain('DeletionBlocked True ReferencedByWorkloads')
    cluster.put(object('MCPServer', 's', { image: 'x' }))
    cluster.put(
      second.kind === 'VirtualMCPServer'
        ? object('VirtualMCPServer', 'v', { incomingAuth: { type: 'anonymous' } })
        : object('MCPServerEntry', 'v', { remoteUrl: 'https://api.example.com/mcp' }),
    )
    await expect.poll(() => config()?.metadata.finalizers).toEqual([])
  })

  test.each([
    ['is not there', undefined, 'NotFound'],
    ['is not valid', invalid, 'Invalid'],
  ])('that %s: its workloads get a condition, and its proxies do not run', async (_what, config, reason) => {
    const cluster = createFakeCluster()
    for (const one of [auth, config, proxy, ...referring]) if (one !== undefined) cluster.put(one)
    const { observed } = await startController(cluster, closers)
    for (const [of, called] of [
      ['MCPRemoteProxy', 'p'],
      ['MCPServer', 's'],
    ] as const) {
      const conditions = conditionsOf(observed.workload(of, 'n', called))
      expect(conditions).toContain(`Ready False ${says.condition}${reason}`)
      expect(conditions).toContain(`${says.condition}Validated False ${says.condition}${reason}`)
    }
    expect(cluster.writes.filter((write) => write.includes('Deployment'))).toEqual([])
    if (config === undefined) return
    expect(conditionsOf(observed.shared(kind, 'n', name))).toContain('Valid False ValidationFailed')
  })

  test('has its hash in the status of a proxy that refers to it', async () => {
    const cluster = createFakeCluster()
    for (const one of [auth, valid, proxy]) cluster.put(one)
    const { observed } = await startController(cluster, closers)
    const ofProxyNow = observed.workload('MCPRemoteProxy', 'n', 'p')
    expect(conditionsOf(ofProxyNow)).toContain(`${says.condition}Validated True ${says.condition}Valid`)
    const hash = statusOf(observed.shared(kind, 'n', name))['configHash']
    expect(hash).toMatch(/^[0-9a-f]+$/)
    expect(statusOf(ofProxyNow)[says.hash]).toBe(hash)
  })
})
