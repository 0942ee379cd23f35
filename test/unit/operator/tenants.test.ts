import { afterEach, describe, expect, test, vi } from 'vitest'
import type { KubeObject } from '../../../src/kube/index.ts'
import type { Controller } from '../../../src/operator/controller.ts'
import { createFakeCluster, type FakeCluster } from '../../support/operator/fake-cluster.ts'
import { ANONYMOUS, callersMap, pod } from '../../support/operator/injected-pod.ts'
import { conditionOf, object } from '../../support/operator/objects.ts'
import { closeAll, type Closers, operate } from '../../support/operator/start-controller.ts'

const closers: Closers = []
afterEach(() => closeAll(closers))

/** An operator with `--restrict-pod-template` and `--secrets-by-label`, over what is stored already. */
const start = (cluster: FakeCluster, restrictPodTemplate: boolean, secretsByLabel: boolean) =>
  operate(cluster, closers, { restrictPodTemplate, secretsByLabel })

const BEARER = object('MCPExternalAuthConfig', 'github', {
  type: 'bearerToken',
  bearerToken: { tokenSecretRef: { name: 'token', key: 'value' } },
})
const proxy = (more: object = {}): KubeObject =>
  object('MCPRemoteProxy', 'p', {
    remoteUrl: 'https://api.example.com/mcp',
    externalAuthConfigRef: { name: 'github' },
    resourceUrl: 'https://mcp.example.com',
    oidcConfig: { type: 'inline', inline: { issuer: 'https://idp.example.com', audience: 'mcp' } },
    ...more,
  })
const secret = (labels: Record<string, string> = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'token', namespace: 'n', labels },
})
const USABLE = { 'extauth.dev/usable': 'true' }
const request = (asked: KubeObject) => ({
  uid: 'u',
  kind: { group: '', version: '', kind: asked.kind },
  namespace: 'n',
  operation: 'CREATE',
  object: asked,
  isDryRun: false,
})
const waits = new AbortController().signal
const applied = ({ writes }: FakeCluster, kind: string): boolean =>
  writes.some((write) => write.startsWith(`apply ${kind} `))
const ofProxy = (controller: Controller, type: string) =>
  conditionOf(controller.observed.workload('MCPRemoteProxy', 'n', 'p'), type)

describe('--restrict-pod-template', () => {
  const FIELDS: [string, unknown][] = [
    ['podTemplateSpec', { spec: { containers: [{ name: 'extauth', command: ['sh'] }] } }],
    ['serviceAccountName', 'admin'],
    ['awsRoleArn', 'arn:aws:iam::123456789012:role/admin'],
    ['image', 'evil:1'],
    ['egress', [{ to: [{ podSelector: {} }] }]],
  ]
  test.each(FIELDS)('refuses spec.%s at admission', async (field, value) => {
    const { decisions } = await start(createFakeCluster(), true, false)
    expect(await decisions.validate(request(proxy({ [field]: value })), waits)).toEqual({
      allowed: false,
      message: `spec.${field}: the operator runs with --restrict-pod-template, so it may not be set`,
    })
    expect(await decisions.validate(request(proxy()), waits)).toMatchObject({ allowed: true })
    const open = await start(createFakeCluster(), false, false)
    expect(await open.decisions.validate(request(proxy({ [field]: value })), waits)).toMatchObject({ allowed: true })
  })

  test.each(FIELDS)('applies nothing of an object with spec.%s that is stored already', async (field, value) => {
    const cluster = createFakeCluster()
    cluster.put(BEARER)
    cluster.put(proxy({ [field]: value }))
    const { controller } = await start(cluster, true, false)
    expect(applied(cluster, 'Deployment')).toBe(false)
    expect(ofProxy(controller, 'Ready')).toMatchObject({
      status: 'False',
      message: expect.stringContaining(`spec.${field}: the operator runs with --restrict-pod-template`) as string,
    })
  })
})

describe('--secrets-by-label', () => {
  test('refuses a config or a proxy that names a Secret without the label, not one that is not there yet', async () => {
    const cluster = createFakeCluster()
    const { decisions } = await start(cluster, false, true)
    const provider = { name: 'idp', issuerUrl: 'https://idp.example.com', audience: 'mcp', clientId: 'c' }
    const providers = [{ ...provider, clientSecretRef: { name: 'token', key: 'value' } }]
    const auth = { oauth: { resourceUrl: 'https://mcp.example.com', providers } }
    const named = [BEARER, proxy({ auth, oidcConfig: undefined })]
    for (const one of named) expect(await decisions.validate(request(one), waits)).toMatchObject({ allowed: true })
    cluster.put(secret())
    const message = expect.stringContaining('the Secret "token" has no label extauth.dev/usable: "true"') as string
    await vi.waitFor(async () => {
      for (const one of named)
        expect(await decisions.validate(request(one), waits)).toEqual({ allowed: false, message })
    })
    cluster.put(secret(USABLE))
    await vi.waitFor(async () => {
      for (const one of named) expect(await decisions.validate(request(one), waits)).toMatchObject({ allowed: true })
    })
  })

  test('gives no pod a Secret that is not there or has no label, and goes on when it has it', async () => {
    const cluster = createFakeCluster()
    cluster.put(BEARER)
    cluster.put(proxy())
    const { controller } = await start(cluster, false, true)
    expect(applied(cluster, 'Deployment')).toBe(false)
    expect(ofProxy(controller, 'Ready')).toMatchObject({ reason: 'SecretsMissing' })
    cluster.put(secret({ 'extauth.dev/usable': 'yes' }))
    await vi.waitFor(() => expect(ofProxy(controller, 'SecretsResolved')).toMatchObject({ reason: 'SecretsNotUsable' }))
    expect(applied(cluster, 'Deployment')).toBe(false)
    cluster.put(secret(USABLE))
    await vi.waitFor(() => expect(applied(cluster, 'Deployment')).toBe(true))
  })

  test('refuses a pod whose config or callers name one', async () => {
    const cluster = createFakeCluster()
    cluster.put(BEARER)
    cluster.put(ANONYMOUS)
    const { decisions } = await start(cluster, false, true)
    const asks = () => decisions.mutate(request(pod()), waits)
    const refused = expect.stringContaining('the Secret "token" has no label') as string
    expect(await asks()).toEqual({ allowed: false, message: refused })
    cluster.put(secret(USABLE))
    await vi.waitFor(async () => expect(await asks()).toMatchObject({ allowed: true }))
    const provider = { name: 'idp', issuerUrl: 'https://idp.example.com', audience: 'mcp', clientId: 'c' }
    const providers = [{ ...provider, clientSecretRef: { name: 'idp', key: 'secret' } }]
    cluster.put(callersMap({ oauth: { resourceUrl: 'https://mcp.example.com', providers } }))
    expect(await asks()).toEqual({
      allowed: false,
      message: expect.stringContaining('the Secret "idp" has no label') as string,
    })
  })

  test('keeps nothing else of a Secret', async () => {
    const cluster = createFakeCluster()
    cluster.put({ ...secret({ ...USABLE, other: 'x' }), data: { value: 'c2VjcmV0' } })
    const { controller } = await start(cluster, false, true)
    expect(controller.observed.secret?.('n', 'token')).toBe('usable')
    expect(controller.observed.secret?.('other', 'token')).toBe('missing')
  })
})
