import { expect, test } from 'vitest'
import type { KubeObject } from '../../../src/kube/index.ts'
import { DEFAULT_POD_SETTINGS } from '../../../src/operator/index.ts'
import { ownedObjects } from '../../../src/operator/remote-proxy/objects.ts'
import { readRemoteProxySpec } from '../../../src/operator/remote-proxy/read-spec.ts'
import { restrictedFields } from '../../../src/operator/remote-proxy/snapshot.ts'

// Pod and Service settings of an MCPRemoteProxy written for another operator.
const object = (spec: object): KubeObject => ({
  apiVersion: 'extauth.dev/v1beta1',
  kind: 'MCPRemoteProxy',
  metadata: { name: 'p', namespace: 'n', uid: 'u' },
  spec: { remoteUrl: 'https://api.example.com/mcp', ...spec },
})

function made(spec: object, kind: string): unknown {
  const manifest = object(spec)
  const { fields, ...rest } = readRemoteProxySpec(manifest)
  const proxy = {
    ...rest,
    ...fields,
    object: manifest,
    name: 'p',
    namespace: 'n',
    image: 'proxy:1',
    manifest,
    services: new Map(),
    networkPolicy: {},
    ports: [],
    pods: DEFAULT_POD_SETTINGS,
    needsPodIdentity: false,
    documents: [],
  }
  return ownedObjects(proxy).find(({ type }) => type.kind === kind)?.object
}

const resourceOverrides = {
  proxyDeployment: {
    annotations: { 'example.com/owner': 'tools' },
    labels: { team: 'tools', 'app.kubernetes.io/managed-by': 'other' },
    env: [{ name: 'TZ', value: 'Europe/Berlin' }],
    imagePullSecrets: [{ name: 'registry' }],
    podTemplateMetadataOverrides: {
      annotations: { 'example.com/logs': 'json' },
      labels: { tier: 'edge', 'app.kubernetes.io/instance': 'other' },
    },
  },
  proxyService: { annotations: { lb: 'internal' }, labels: { exposed: 'inside' } },
}

test('an annotation of the controller of Deployments is left to it', () => {
  const annotations = { 'deployment.kubernetes.io/revision': '3', 'example.com/owner': 'tools' }
  const deployment = made({ resourceOverrides: { proxyDeployment: { annotations } } }, 'Deployment') as KubeObject
  expect(deployment.metadata.annotations).toEqual({ 'example.com/owner': 'tools' })
})

test('its overrides are added to Deployment, pods and Service; what the operator sets stays', () => {
  expect(made({ resourceOverrides }, 'Deployment')).toMatchObject({
    metadata: {
      annotations: { 'example.com/owner': 'tools' },
      labels: { team: 'tools', 'app.kubernetes.io/managed-by': 'mcp-extauth-operator' },
    },
    spec: {
      template: {
        metadata: {
          annotations: { 'example.com/logs': 'json' },
          labels: { tier: 'edge', 'app.kubernetes.io/instance': 'p' },
        },
        spec: {
          imagePullSecrets: [{ name: 'registry' }],
          containers: [{ name: 'extauth', env: [{ name: 'TZ', value: 'Europe/Berlin' }] }],
        },
      },
    },
  })
  expect(made({ resourceOverrides }, 'Service')).toMatchObject({
    metadata: { annotations: { lb: 'internal' }, labels: { exposed: 'inside' } },
  })
})

test('its port, its service account and its affinity are those of its Service and pods', () => {
  const spec = { proxyPort: 9090, serviceAccount: 'own', sessionAffinity: 'None' }
  expect(made(spec, 'Service')).toMatchObject({ spec: { sessionAffinity: 'None', ports: [{ port: 9090 }] } })
  expect(made(spec, 'Deployment')).toMatchObject({ spec: { template: { spec: { serviceAccountName: 'own' } } } })
  expect(made(spec, 'ServiceAccount')).toBeUndefined()
})

test('pods that share no session key keep their clients; with a key any pod accepts any session', () => {
  const sessionKeySecretRef = { name: 'sessions', key: 'key' }
  expect(made({}, 'Service')).toMatchObject({ spec: { sessionAffinity: 'ClientIP' } })
  expect(made({ sessionKeySecretRef }, 'Service')).toMatchObject({ spec: { sessionAffinity: 'None' } })
  expect(made({ sessionKeySecretRef }, 'ConfigMap')).toMatchObject({
    data: { 'proxy.yaml': expect.stringMatching(/sessionKeySecretRef:\s+name: sessions\s+key: key/) as string },
  })
  expect(JSON.stringify(made({ sessionKeySecretRef }, 'Deployment'))).toContain('"secretName":"sessions"')
})

test('an autoscaler decides how many pods there are, and the Deployment says nothing about it', () => {
  const autoscaling = { minReplicas: 2, maxReplicas: 5 }
  expect(made({ autoscaling }, 'HorizontalPodAutoscaler')).toMatchObject({
    spec: {
      scaleTargetRef: { kind: 'Deployment', name: 'p-extauth' },
      minReplicas: 2,
      maxReplicas: 5,
      metrics: [{ resource: { name: 'cpu', target: { averageUtilization: 80 } } }],
    },
  })
  expect(made({ autoscaling }, 'Deployment')).not.toHaveProperty('spec.replicas')
  expect(made({ replicas: 2 }, 'HorizontalPodAutoscaler')).toBeUndefined()
})

test('--restrict-pod-template refuses a service account, variables and secrets of images, not labels', () => {
  const { proxyDeployment, proxyService } = resourceOverrides
  expect(restrictedFields(object({ resourceOverrides })).join()).toContain(
    'spec.resourceOverrides: the operator runs with',
  )
  expect(restrictedFields(object({ serviceAccount: 'own' })).join()).toContain('spec.serviceAccountName')
  const { labels, annotations } = proxyDeployment
  const harmless = { proxyDeployment: { labels, annotations }, proxyService }
  expect(restrictedFields(object({ resourceOverrides: harmless }))).toEqual([])
})

test('a gateway and an Ingress lead to the Service, by its name and port', () => {
  const parentRefs = [{ name: 'public', namespace: 'gateways', sectionName: 'https' }]
  const gateway = { parentRefs, hostnames: ['mcp.example.com'] }
  expect(made({ gateway, port: 9000 }, 'HTTPRoute')).toMatchObject({
    metadata: { name: 'p-extauth' },
    spec: {
      parentRefs,
      hostnames: ['mcp.example.com'],
      rules: [{ backendRefs: [{ name: 'p-extauth', port: 9000 }] }],
    },
  })
  const annotations = { 'cert-manager.io/cluster-issuer': 'public' }
  const ingress = { host: 'mcp.example.com', className: 'nginx', tlsSecretName: 'mcp-tls', annotations }
  expect(made({ ingress }, 'Ingress')).toMatchObject({
    metadata: { name: 'p-extauth', annotations },
    spec: {
      ingressClassName: 'nginx',
      tls: [{ hosts: ['mcp.example.com'], secretName: 'mcp-tls' }],
      rules: [{ host: 'mcp.example.com', http: { paths: [{ backend: { service: { name: 'p-extauth' } } }] } }],
    },
  })
  expect([made({}, 'HTTPRoute'), made({}, 'Ingress')]).toEqual([undefined, undefined])
  expect(restrictedFields(object({ ingress, gateway }))).toEqual([
    'spec.ingress.annotations: the operator runs with --restrict-pod-template, so it may not be set',
  ])
})
