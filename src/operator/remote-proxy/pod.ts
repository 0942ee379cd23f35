import { ownedName } from '../names.ts'
import { clusterMount, DRAIN_SECONDS, keyMounts, type Mount, proxyContainer, RUN_AS } from '../proxy-container.ts'
import { CONTAINER } from './pod-template-patch.ts'
import { adminPortOf, PATHS, type RemoteProxy, selectorLabels } from './remote-proxy.ts'

/** Seconds between the preStop hook and SIGTERM, until Services have removed the pod. */
const PRE_STOP_SECONDS = 5
/** Seconds for the last bytes. */
const MARGIN_SECONDS = 10
/** Annotation of the pods: EKS injects credentials for this role at start, so a different role recreates them. */
const POD_AWS_ROLE = 'extauth.dev/aws-role-arn'

const DEFAULT_RESOURCES = { requests: { cpu: '100m', memory: '128Mi' }, limits: { memory: '512Mi' } }

/** The pod template of a proxy, before `podTemplateSpec` is merged into it. */
export function podTemplateOf(proxy: RemoteProxy): object {
  const mounts = mountsOf(proxy)
  const { imagePullSecrets, podTemplateMetadataOverrides: more = {} } = proxy.overrides.proxyDeployment ?? {}
  const annotations = {
    ...more.annotations,
    ...(proxy.awsRoleArn === undefined ? {} : { [POD_AWS_ROLE]: proxy.awsRoleArn }),
    // If the policy blocks metrics, a scrape would only fail.
    ...(proxy.metricsFrom.length === 0
      ? {}
      : { 'prometheus.io/scrape': 'true', 'prometheus.io/port': String(adminPortOf(proxy)) }),
  }
  return {
    metadata: {
      labels: { ...more.labels, ...selectorLabels(proxy), 'app.kubernetes.io/component': 'mcp-remote-proxy' },
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    },
    spec: {
      serviceAccountName: proxy.serviceAccountName ?? ownedName(proxy.name),
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      ...(imagePullSecrets === undefined ? {} : { imagePullSecrets }),
      terminationGracePeriodSeconds: PRE_STOP_SECONDS + DRAIN_SECONDS + MARGIN_SECONDS,
      topologySpreadConstraints: ['topology.kubernetes.io/zone', 'kubernetes.io/hostname'].map((topologyKey) => ({
        maxSkew: 1,
        topologyKey,
        whenUnsatisfiable: 'ScheduleAnyway',
        labelSelector: { matchLabels: selectorLabels(proxy) },
      })),
      securityContext: {
        runAsNonRoot: true,
        ...(proxy.pods.fixedUser ? { ...RUN_AS, fsGroup: RUN_AS.runAsGroup } : {}),
        seccompProfile: { type: 'RuntimeDefault' },
        // Not every container runtime allows non-root users to bind low ports.
        ...(proxy.port < 1024 ? { sysctls: [{ name: 'net.ipv4.ip_unprivileged_port_start', value: '0' }] } : {}),
      },
      containers: [containerOf(proxy, mounts)],
      volumes: mounts.map(({ volume }) => volume),
    },
  }
}

function containerOf(proxy: RemoteProxy, mounts: readonly Mount[]): object {
  return proxyContainer({
    name: CONTAINER,
    image: proxy.image,
    env: proxy.overrides.proxyDeployment?.env ?? [],
    args: ['proxy', '--config', PATHS.config, '--namespace', proxy.namespace, '--drain-grace', `${DRAIN_SECONDS}s`],
    ports: [
      { name: 'mcp', containerPort: proxy.port },
      { name: 'admin', containerPort: adminPortOf(proxy) },
    ],
    adminPort: 'admin',
    lifecycle: { preStop: { sleep: { seconds: PRE_STOP_SECONDS } } },
    resources: proxy.resources ?? DEFAULT_RESOURCES,
    mounts,
  })
}

const MODE = 0o440
/** A platform that assigns the user need not assign that user's group to volumes. */
const OPEN_MODE = 0o444

function mountsOf(proxy: RemoteProxy): Mount[] {
  const mode = proxy.pods.fixedUser ? MODE : OPEN_MODE
  return [
    // Whole directories, never subPath: files under a subPath are not updated.
    { volume: { name: 'config', configMap: { name: ownedName(proxy.name) } }, path: PATHS.config },
    ...keyMounts(proxy, { secret: 'secret', ca: 'ca' }, mode),
    ...(proxy.needsClusterToken ? [clusterMount('cluster', mode)] : []),
  ]
}
