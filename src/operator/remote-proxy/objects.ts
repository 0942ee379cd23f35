import type { KubeObject, ResourceType } from '../../kube/index.ts'
import { CLUSTER_TYPES } from '../kinds.ts'
import { ownedName } from '../names.ts'
import { configMapOf } from './config-map.ts'
import { networkPolicyOf } from './network-policy.ts'
import { podTemplateOf } from './pod.ts'
import { withOwnContainer } from './pod-template-patch.ts'
import { httpRouteOf, ingressOf } from './routes.ts'
import { owned, type RemoteProxy, selectorLabels } from './remote-proxy.ts'
import { strategicMerge } from './strategic-merge.ts'

export interface WantedObject {
  readonly type: ResourceType
  readonly object: KubeObject
}

/** All objects that one MCPRemoteProxy owns, in the order of application. */
export function ownedObjects(proxy: RemoteProxy): WantedObject[] {
  return [
    ...(proxy.serviceAccountName === undefined
      ? [{ type: CLUSTER_TYPES.ServiceAccount, object: serviceAccountOf(proxy) }]
      : []),
    { type: CLUSTER_TYPES.ConfigMap, object: configMapOf(proxy) },
    ...((proxy.networkPolicy.enabled ?? proxy.pods.policy.enabled)
      ? [{ type: CLUSTER_TYPES.NetworkPolicy, object: networkPolicyOf(proxy) }]
      : []),
    { type: CLUSTER_TYPES.Deployment, object: deploymentOf(proxy) },
    { type: CLUSTER_TYPES.Service, object: serviceOf(proxy) },
    ...(proxy.ingress === undefined ? [] : [{ type: CLUSTER_TYPES.Ingress, object: ingressOf(proxy, proxy.ingress) }]),
    ...(proxy.autoscaling === undefined
      ? []
      : [{ type: CLUSTER_TYPES.HorizontalPodAutoscaler, object: autoscalerOf(proxy, proxy.autoscaling) }]),
    // With an autoscaler there may be several pods at any time; a single pod may be evicted.
    ...(proxy.replicas === undefined || proxy.replicas > 1
      ? [{ type: CLUSTER_TYPES.PodDisruptionBudget, object: budgetOf(proxy) }]
      : []),
    // Last, because a cluster without the Gateway API rejects it: everything else exists by then.
    ...(proxy.gateway === undefined
      ? []
      : [{ type: CLUSTER_TYPES.HTTPRoute, object: httpRouteOf(proxy, proxy.gateway) }]),
  ]
}

/** Kinds that a proxy may own; undesired objects of them are deleted. */
export const OWNED_TYPES: readonly ResourceType[] = [
  CLUSTER_TYPES.ServiceAccount,
  CLUSTER_TYPES.ConfigMap,
  CLUSTER_TYPES.NetworkPolicy,
  CLUSTER_TYPES.Deployment,
  CLUSTER_TYPES.Service,
  CLUSTER_TYPES.HorizontalPodAutoscaler,
  CLUSTER_TYPES.PodDisruptionBudget,
  CLUSTER_TYPES.Ingress,
  CLUSTER_TYPES.HTTPRoute,
]

/** Annotation that EKS reads to give pods of the account a token and its role (IRSA). */
const IRSA_ROLE = 'eks.amazonaws.com/role-arn'

const serviceAccountOf = (proxy: RemoteProxy): KubeObject =>
  owned(
    proxy,
    'v1',
    'ServiceAccount',
    { automountServiceAccountToken: false },
    proxy.awsRoleArn === undefined ? {} : { annotations: { [IRSA_ROLE]: proxy.awsRoleArn } },
  )

/** Contains no configuration: changes reach the pods through the mount, and the Deployment keeps its generation. */
const deploymentOf = (proxy: RemoteProxy): KubeObject =>
  owned(
    proxy,
    'apps/v1',
    'Deployment',
    {
      spec: {
        ...(proxy.replicas === undefined ? {} : { replicas: proxy.replicas }),
        revisionHistoryLimit: 5,
        strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
        selector: { matchLabels: selectorLabels(proxy) },
        template: strategicMerge(podTemplateOf(proxy), withOwnContainer(proxy.podTemplateSpec)),
      },
    },
    addedToDeployment(proxy),
  )

/**
 * Labels and annotations of its overrides, without annotations of the Deployment controller, which copied manifests
 * contain: both controllers would overwrite each other forever.
 */
function addedToDeployment({ overrides: { proxyDeployment = {} } }: RemoteProxy) {
  const { labels, annotations } = proxyDeployment
  if (annotations === undefined) return { labels }
  const kept = Object.entries(annotations).filter(([name]) => !name.startsWith('deployment.kubernetes.io/'))
  return { labels, annotations: Object.fromEntries(kept) }
}

const serviceOf = (proxy: RemoteProxy): KubeObject =>
  owned(
    proxy,
    'v1',
    'Service',
    {
      spec: {
        type: 'ClusterIP',
        sessionAffinity: proxy.sessionAffinity,
        selector: selectorLabels(proxy),
        ports: [{ name: 'mcp', port: proxy.port, targetPort: 'mcp', protocol: 'TCP', appProtocol: 'http' }],
      },
    },
    proxy.overrides.proxyService,
  )

const DEFAULT_CPU_PERCENT = 80

const autoscalerOf = (proxy: RemoteProxy, autoscaling: NonNullable<RemoteProxy['autoscaling']>): KubeObject => {
  const { minReplicas = 1, maxReplicas, targetCPUUtilizationPercentage = DEFAULT_CPU_PERCENT } = autoscaling
  const target = { type: 'Utilization', averageUtilization: targetCPUUtilizationPercentage }
  return owned(proxy, 'autoscaling/v2', 'HorizontalPodAutoscaler', {
    spec: {
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: ownedName(proxy.name) },
      minReplicas,
      maxReplicas,
      metrics: [{ type: 'Resource', resource: { name: 'cpu', target } }],
    },
  })
}

const budgetOf = (proxy: RemoteProxy): KubeObject =>
  owned(proxy, 'policy/v1', 'PodDisruptionBudget', {
    // A pod that is not ready serves no client: it must not block the drain of its node.
    spec: {
      maxUnavailable: 1,
      unhealthyPodEvictionPolicy: 'AlwaysAllow',
      selector: { matchLabels: selectorLabels(proxy) },
    },
  })
