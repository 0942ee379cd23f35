import { describe, expect, test } from 'vitest'
import type { KubeObject } from '../../../src/kube/index.ts'
import {
  DEFAULT_POD_SETTINGS,
  type EgressRule,
  readEgressRule,
  readProxyPolicy,
} from '../../../src/operator/pod-settings.ts'
import { serviceKey, servicePorts } from '../../../src/operator/service-ports.ts'
import { networkPolicyOf } from '../../../src/operator/remote-proxy/network-policy.ts'
import { ownedObjects } from '../../../src/operator/remote-proxy/objects.ts'
import { readRemoteProxySpec } from '../../../src/operator/remote-proxy/read-spec.ts'
import type { RemoteProxy } from '../../../src/operator/remote-proxy/remote-proxy.ts'

const OBJECT: KubeObject = {
  apiVersion: 'extauth.dev/v1alpha1',
  kind: 'MCPRemoteProxy',
  metadata: { name: 'p', namespace: 'n', uid: 'u' },
}

const proxy = (more: Partial<RemoteProxy> = {}): RemoteProxy => ({
  object: OBJECT,
  name: 'p',
  namespace: 'n',
  port: 8080,
  replicas: 2,
  image: 'proxy:1',
  resources: undefined,
  podTemplateSpec: undefined,
  serviceAccountName: undefined,
  awsRoleArn: undefined,
  sessionAffinity: 'ClientIP',
  sessionKey: undefined,
  autoscaling: undefined,
  overrides: {},
  metricsFrom: [],
  egress: [],
  manifest: OBJECT,
  allowedOrigins: [],
  externalUrl: undefined,
  gateway: undefined,
  ingress: undefined,
  secretKeys: new Map([['github', new Set(['token', 'old'])]]),
  caBundleKeys: new Map(),
  needsClusterToken: false,
  needsPodIdentity: false,
  urls: ['https://api.example.com/mcp', 'http://idp.example.com', 'https://sts.example.com:8443/'],
  services: new Map(),
  networkPolicy: {},
  ports: [26379],
  pods: DEFAULT_POD_SETTINGS,
  documents: [],
  ...more,
})

interface Rule {
  readonly to?: readonly { readonly ipBlock?: { readonly cidr: string; readonly except?: readonly string[] } }[]
  readonly from?: readonly object[]
  readonly ports: readonly { readonly port: number | string; readonly protocol: string }[]
}

const policy = (more?: Partial<RemoteProxy>) =>
  networkPolicyOf(proxy(more))['spec'] as {
    readonly podSelector: object
    readonly policyTypes: readonly string[]
    readonly ingress: readonly Rule[]
    readonly egress: readonly Rule[]
  }

describe('the network policy of a proxy', () => {
  test('allows only pods that need it to reach the pod identity agent, and none the metadata service of the node', () => {
    const linkLocal = (more?: Partial<RemoteProxy>) =>
      policy(more)
        .egress.flatMap(({ to = [], ports }) => to.map(({ ipBlock }) => [ipBlock?.cidr ?? '', ports] as const))
        .filter(
          ([cidr]) =>
            cidr.startsWith('169.254.170.') || cidr.startsWith('fd00:ec2:') || cidr.startsWith('169.254.169.'),
        )
    expect(linkLocal()).toEqual([])
    const agent = [{ port: 80, protocol: 'TCP' }]
    expect(linkLocal({ needsPodIdentity: true })).toEqual([
      ['169.254.170.23/32', agent],
      ['fd00:ec2::23/128', agent],
    ])
  })

  test('is for its pods alone, and bounds both directions', () => {
    expect(policy()).toMatchObject({
      podSelector: { matchLabels: { 'app.kubernetes.io/name': 'mcp-extauth', 'app.kubernetes.io/instance': 'p' } },
      policyTypes: ['Ingress', 'Egress'],
    })
  })

  test('allows all peers to the port, and only named ones to the metrics', () => {
    expect(policy().ingress).toEqual([{ ports: [{ port: 8080, protocol: 'TCP' }] }])
    const metricsFrom = [{ podSelector: { matchLabels: { app: 'prometheus' } } }]
    expect(policy({ metricsFrom }).ingress[1]).toEqual({ from: metricsFrom, ports: [{ port: 8081, protocol: 'TCP' }] })
  })

  test('lets it out to the ports of its URLs and its store, and to no metadata service', () => {
    const [dns, out, ...more] = policy({ egress: [{ to: [], ports: [] }] }).egress
    expect(dns?.ports).toEqual([
      { port: 53, protocol: 'UDP' },
      { port: 53, protocol: 'TCP' },
    ])
    expect(out?.ports.map(({ port }) => port)).toEqual([80, 443, 8443, 26379])
    expect(out?.to?.map(({ ipBlock }) => ipBlock)).toEqual([
      { cidr: '0.0.0.0/0', except: ['169.254.0.0/16', '100.100.100.200/32', '168.63.129.16/32'] },
      { cidr: '::/0', except: ['fe80::/10', 'fd00:ec2::/32', '64:ff9b::a9fe:0/112'] },
    ])
    expect(more).toEqual([{ to: [], ports: [] }])
    expect(policy({ urls: ['no url'], ports: [] }).egress).toHaveLength(1)
  })

  test('lets callers in from everywhere, or from where the proxy or the operator says', () => {
    const from = [{ podSelector: { matchLabels: { app: 'gateway' } } }]
    const settings = { ...DEFAULT_POD_SETTINGS, policy: { enabled: true, ingressFrom: [{ podSelector: {} }] } }
    expect(policy().ingress[0]).not.toHaveProperty('from')
    expect(policy({ networkPolicy: { ingressFrom: from } }).ingress[0]?.from).toEqual(from)
    expect(policy({ pods: settings }).ingress[0]?.from).toEqual([{ podSelector: {} }])
    expect(policy({ pods: settings, networkPolicy: { ingressFrom: from } }).ingress[0]?.from).toEqual(from)
  })

  test('is not made where the proxy or the operator wants none', () => {
    const kinds = (more: Partial<RemoteProxy>) => ownedObjects(proxy(more)).map(({ type }) => type.kind)
    const none = { ...DEFAULT_POD_SETTINGS, policy: { enabled: false } }
    expect(kinds({})).toContain('NetworkPolicy')
    expect(kinds({ networkPolicy: { enabled: false } })).not.toContain('NetworkPolicy')
    expect(kinds({ pods: none })).not.toContain('NetworkPolicy')
    expect(kinds({ pods: none, networkPolicy: { enabled: true } })).toContain('NetworkPolicy')
  })

  test('names the ports behind Services: policies are evaluated there', () => {
    const service = (spec: object) => servicePorts({ apiVersion: 'v1', kind: 'Service', metadata: { name: 's' }, spec })
    const ports = [{ port: 80, targetPort: 3000 }, { port: 8443, targetPort: 'https' }, { port: 9000 }]
    const urls = [
      'http://tools',
      'https://tools:8443',
      'http://tools:9000',
      'http://tools:1234',
      'https://a.example.com',
    ]
    const portsOf = (spec: object) =>
      policy({ urls, ports: [], services: new Map([['tools', service(spec)]]) }).egress[1]?.ports.map(
        ({ port }) => port,
      )
    expect(portsOf({ clusterIP: '10.0.0.1', ports })).toEqual([443, 1234, 3000, 9000, 'https'])
    // Names of these lead to pods themselves.
    expect(portsOf({ clusterIP: 'None', ports })).toEqual([80, 443, 1234, 8443, 9000])
  })

  test.each([
    ['tools', 'n/tools'],
    ['tools.other', 'other/tools'],
    ['tools.other.svc', 'other/tools'],
    ['tools.other.svc.cluster.local', 'other/tools'],
    ['api.example.com', undefined],
    ['10.0.0.1', undefined],
  ])('the host %s names the Service %s', (host, key) => {
    expect(serviceKey(host, 'n')).toBe(key)
  })

  test.each([
    ['{"enabled":false}', { enabled: false }],
    ['{"ingressFrom":[{"podSelector":{}}]}', { enabled: true, ingressFrom: [{ podSelector: {} }] }],
    ['{"ingressFrom":[]}', undefined],
    ['{"ingressFrom":[{}]}', undefined],
    ['{"enabld":false}', undefined],
    ['x', undefined],
  ])('the setting %s is read as %j', (text, setting) => {
    expect(readProxyPolicy(text)).toEqual(setting)
  })

  const API = 'https://kubernetes.default.svc'
  const rule = (port: number): EgressRule => ({ to: [{ ipBlock: { cidr: '10.0.0.2/32' } }], ports: [{ port }] })

  test('asks for names where the cluster has its DNS', () => {
    expect(policy({ pods: { ...DEFAULT_POD_SETTINGS, dns: rule(5353) } }).egress[0]).toEqual(rule(5353))
  })

  test('lets it out to the API server where that is, and to its ports nowhere else', () => {
    const urls = [API, 'http://idp.example.com']
    const reaches = (more: Partial<RemoteProxy>) => policy({ urls, ports: [], ...more }).egress.slice(1)
    const everywhere = reaches({ needsClusterToken: true })
    expect(everywhere.flatMap(({ ports }) => ports.map(({ port }) => port))).toEqual([80, 443, 6443])
    const pods = { ...DEFAULT_POD_SETTINGS, apiServer: rule(6443) }
    const [out, apiServer] = reaches({ needsClusterToken: true, pods })
    expect([out?.ports.map(({ port }) => port), apiServer]).toEqual([[80], rule(6443)])
    expect(reaches({ pods, urls: ['http://idp.example.com'] })).toHaveLength(1)
  })

  test('rejects an invalid rule, and one that allows all peers', () => {
    const text = '{"to":[{"ipBlock":{"cidr":"10.0.0.2/32"}}],"ports":[{"port":6443,"protocol":"TCP"}]}'
    expect(readEgressRule(text)).toEqual(JSON.parse(text))
    const wrong = ['', '[]', '{}', '{"to":[{}],"ports":[{"port":53}]}', '{"ports":[{"port":53}]}']
    const more = ['{"to":[],"ports":[{"port":53}]}', '{"to":[{"podSelector":{}}]}', text.replace('6443', '0')]
    for (const one of [...wrong, ...more]) expect(readEgressRule(one)).toBeUndefined()
  })
})

type Template = {
  readonly spec: {
    readonly serviceAccountName: string
    readonly automountServiceAccountToken: boolean
    readonly containers: readonly { readonly name: string; readonly securityContext: object }[]
    readonly volumes: readonly { readonly name: string; readonly secret?: object; readonly projected?: object }[]
  }
}

const templateOf = (more?: Partial<RemoteProxy>): Template => {
  const found = ownedObjects(proxy(more)).find(({ object }) => object.kind === 'Deployment')
  if (found === undefined) throw new Error('no Deployment')
  return (found.object['spec'] as { readonly template: Template }).template
}

describe('the pods of a proxy', () => {
  test('run as non-root, without capabilities or privilege escalation', () => {
    const { spec } = templateOf()
    expect(spec).toMatchObject({
      automountServiceAccountToken: false,
      serviceAccountName: 'p-extauth',
      securityContext: { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: 'RuntimeDefault' } },
    })
    expect(spec.containers[0]?.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      runAsNonRoot: true,
      capabilities: { drop: ['ALL'] },
    })
  })

  test('name no user where the platform gives one, who reads what they mount', () => {
    const { spec } = templateOf({ pods: { ...DEFAULT_POD_SETTINGS, fixedUser: false }, needsClusterToken: true })
    const { securityContext, volumes } = spec as typeof spec & { securityContext: object }
    expect(securityContext).toEqual({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
    const modes = volumes.flatMap(({ secret, projected }) => secret ?? projected ?? [])
    expect(modes).toMatchObject([{ defaultMode: 0o444 }, { defaultMode: 0o444 }])
  })

  test('are scraped only if peers may read their metrics', () => {
    const scraped = (more?: Partial<RemoteProxy>) =>
      (templateOf(more) as { metadata?: { annotations?: object } }).metadata?.annotations
    expect(scraped()).toBeUndefined()
    expect(scraped({ metricsFrom: [{ podSelector: {} }] })).toEqual({
      'prometheus.io/scrape': 'true',
      'prometheus.io/port': '8081',
    })
  })

  test('mount the keys that are named and no others, and who they are only where that is needed', () => {
    const { volumes } = templateOf().spec
    expect(volumes.find(({ name }) => name === 'secret-github')?.secret).toEqual({
      secretName: 'github',
      optional: true,
      defaultMode: 0o440,
      items: [
        { key: 'old', path: 'old' },
        { key: 'token', path: 'token' },
      ],
    })
    expect(volumes.some(({ projected }) => projected !== undefined)).toBe(false)
    expect(templateOf({ needsClusterToken: true }).spec.volumes.at(-1)?.name).toBe('cluster')
  })

  test('are what a template makes of them: containers by their names, the rest stays', () => {
    const env = [{ name: 'OTEL_EXPORTER_OTLP_ENDPOINT', value: 'https://otel' }]
    const containers = [
      { name: 'side', image: 'x' },
      { name: 'extauth', env },
    ]
    const { spec } = templateOf({ podTemplateSpec: { spec: { containers, nodeSelector: { disk: 'ssd' } } } })
    expect(spec.containers[0]).toMatchObject({ image: 'proxy:1', env })
    expect(spec.containers.map(({ name }) => name)).toEqual(['extauth', 'side'])
    expect(spec).toMatchObject({ nodeSelector: { disk: 'ssd' }, automountServiceAccountToken: false })
    const gone = templateOf({ podTemplateSpec: { spec: { volumes: [{ $patch: 'delete', name: 'secret-github' }] } } })
    expect(gone.spec.volumes.map(({ name }) => name)).toEqual(['config'])
  })

  test('have a budget where there are or may be several, and an account of their own unless one is named', () => {
    const kindsOf = (more?: Partial<RemoteProxy>) => ownedObjects(proxy(more)).map(({ object }) => object.kind)
    const all = ['ServiceAccount', 'ConfigMap', 'NetworkPolicy', 'Deployment', 'Service', 'PodDisruptionBudget']
    expect(kindsOf()).toEqual(all)
    expect(kindsOf({ replicas: 1 })).toEqual(all.slice(0, -1))
    expect(kindsOf({ replicas: undefined })).toEqual(all)
    const budget = ownedObjects(proxy()).find(({ object }) => object.kind === 'PodDisruptionBudget')
    expect(budget?.object['spec']).toMatchObject({ maxUnavailable: 1 })
    expect(kindsOf({ serviceAccountName: 'mine' })).toEqual(all.slice(1))
    const account = ownedObjects(proxy()).find(({ object }) => object.kind === 'ServiceAccount')
    expect(account?.object['automountServiceAccountToken']).toBe(false)
    for (const { object } of ownedObjects(proxy()))
      expect(object.metadata.ownerReferences).toEqual([
        { apiVersion: OBJECT.apiVersion, kind: OBJECT.kind, name: 'p', uid: 'u', controller: true },
      ])
  })
})

test('an AWS role is set on the service account of the operator, and a change recreates pods', () => {
  const made = (more: Partial<RemoteProxy>) => {
    const objects = ownedObjects(proxy(more)).map(({ object }) => object)
    const account = objects.find(({ kind }) => kind === 'ServiceAccount')
    const deployment = objects.find(({ kind }) => kind === 'Deployment')?.spec as { template: KubeObject } | undefined
    const { metadata, spec } = deployment?.template ?? {}
    return { account: account?.metadata.annotations, pods: metadata?.annotations, spec }
  }
  const awsRoleArn = 'arn:aws:iam::123456789012:role/mcp-extauth'
  const without = made({})
  expect([without.account, without.pods]).toEqual([undefined, undefined])
  expect(made({ awsRoleArn })).toEqual({
    account: { 'eks.amazonaws.com/role-arn': awsRoleArn },
    pods: { 'extauth.dev/aws-role-arn': awsRoleArn },
    spec: without.spec,
  })
})

describe('what is read of a spec', () => {
  const read = (spec: object) => readRemoteProxySpec({ ...OBJECT, spec })

  test('secrets, authorities and addresses that callers need are found wherever they stand', () => {
    const spec = read({
      remoteUrl: 'https://api.example.com/mcp',
      auth: {
        oauth: {
          resource: 'https://p.example.com/',
          providers: [
            {
              issuerUrl: 'https://idp.example.com',
              introspectionUrl: 'https://idp.example.com/introspect',
              clientSecretRef: { name: 'idp', key: 'secret' },
              caBundleRef: { configMapRef: { name: 'roots', key: 'ca.crt' } },
            },
            { clientAuth: { key: { secretRef: { name: 'own', key: 'tls.key' } } } },
          ],
        },
      },
    })
    const keys = new Map([...spec.secretKeys].map(([name, found]) => [name, [...found]]))
    expect(Object.fromEntries(keys)).toEqual({ idp: ['secret'], own: ['tls.key'] })
    expect([...spec.caBundleKeys]).toEqual([['roots', new Set(['ca.crt'])]])
    expect(spec.urls).toEqual([
      'https://api.example.com/mcp',
      'https://idp.example.com',
      'https://idp.example.com/introspect',
    ])
    expect(spec.needsClusterToken).toBe(false)
  })

  test('secrets of forwarded headers and authorities of the remote server are mounted, too', () => {
    const spec = read({
      remoteUrl: 'https://api.example.com/mcp',
      headerForward: {
        addHeadersFromSecret: [{ headerName: 'X-Api-Key', valueSecretRef: { name: 'tenant', key: 'api-key' } }],
      },
      caBundleRef: { configMapRef: { name: 'company-ca', key: 'ca.crt' } },
    })
    expect([...spec.secretKeys]).toEqual([['tenant', new Set(['api-key'])]])
    expect([...spec.caBundleKeys]).toEqual([['company-ca', new Set(['ca.crt'])]])
    expect(Object.keys(spec.routeFields)).toEqual(['remoteUrl', 'headerForward', 'caBundleRef'])
  })

  test('the cluster is asked for its keys by pods that have a token of theirs', () => {
    const spec = read({ oidcConfig: {} })
    expect([spec.needsClusterToken, spec.urls]).toEqual([true, ['https://kubernetes.default.svc']])
    expect(read({ oidcConfig: { type: 'inline' } }).needsClusterToken).toBe(false)
    expect(read({ auth: { file: '/var/run/secrets/kubernetes.io/serviceaccount/token' } }).needsClusterToken).toBe(true)
  })

  test('what is about pods stays out of what the proxy reads', () => {
    const spec = read({ port: 9000, replicas: 3, image: 'x', remoteUrl: 'https://a.example.com', podTemplateSpec: {} })
    expect(spec.routeFields).toEqual({ remoteUrl: 'https://a.example.com' })
    expect([spec.fields.port, spec.fields.replicas, spec.image]).toEqual([9000, 3, 'x'])
  })
})
