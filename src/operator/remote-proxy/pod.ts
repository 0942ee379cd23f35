import type { Keys } from '../key-refs.ts'
import { dnsLabel, ownedName } from '../names.ts'
import { CONTAINER } from './pod-template-patch.ts'
import { adminPortOf, PATHS, type RemoteProxy, selectorLabels } from './remote-proxy.ts'

/** Seconds that a pod waits before SIGTERM until Services have forgotten it. */
const PRE_STOP_SECONDS = 5
/** Seconds that answers may go on after SIGTERM. */
const DRAIN_SECONDS = 30
/** Seconds for the last bytes. */
const MARGIN_SECONDS = 10
/** Of the pods: what EKS puts into them when they start is for this role, so another one makes them anew. */
const POD_AWS_ROLE = 'extauth.dev/aws-role-arn'
/** The user of the image. */
export const RUN_AS = { runAsUser: 65532, runAsGroup: 65532 } as const

const DEFAULT_RESOURCES = { requests: { cpu: '100m', memory: '128Mi' }, limits: { memory: '512Mi' } }

/** Security settings with which a container passes the Pod Security Standard `restricted`. */
export const RESTRICTED = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  runAsNonRoot: true,
  capabilities: { drop: ['ALL'] },
} as const

export interface Mount {
  readonly volume: { readonly name: string; readonly [source: string]: unknown }
  readonly path: string
}

/** The pod template of a proxy, before `podTemplateSpec` is merged into it. */
export function podTemplateOf(proxy: RemoteProxy): object {
  const mounts = mountsOf(proxy)
  const { imagePullSecrets, podTemplateMetadataOverrides: more = {} } = proxy.overrides.proxyDeployment ?? {}
  const annotations = {
    ...more.annotations,
    ...(proxy.awsRoleArn === undefined ? {} : { [POD_AWS_ROLE]: proxy.awsRoleArn }),
    // Where the policy lets nobody read metrics, a scrape would only fail.
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
        // Not every container runtime lets nobody bind a low port by itself.
        ...(proxy.port < 1024 ? { sysctls: [{ name: 'net.ipv4.ip_unprivileged_port_start', value: '0' }] } : {}),
      },
      containers: [containerOf(proxy, mounts)],
      volumes: mounts.map(({ volume }) => volume),
    },
  }
}

function containerOf(proxy: RemoteProxy, mounts: readonly Mount[]): object {
  const probe = (path: string) => ({ httpGet: { path, port: 'admin' } })
  const { env } = proxy.overrides.proxyDeployment ?? {}
  return {
    name: CONTAINER,
    image: proxy.image,
    ...(env === undefined || env.length === 0 ? {} : { env }),
    args: ['proxy', '--config', PATHS.config, '--namespace', proxy.namespace, '--drain-grace', `${DRAIN_SECONDS}s`],
    ports: [
      { name: 'mcp', containerPort: proxy.port },
      { name: 'admin', containerPort: adminPortOf(proxy) },
    ],
    // A missing secret or an identity provider that is down is not mended by a restart: liveness asks for health only.
    startupProbe: { ...probe('/health'), periodSeconds: 1, failureThreshold: 60 },
    readinessProbe: { ...probe('/readiness'), periodSeconds: 5 },
    livenessProbe: { ...probe('/health'), periodSeconds: 10, failureThreshold: 3 },
    lifecycle: { preStop: { sleep: { seconds: PRE_STOP_SECONDS } } },
    resources: proxy.resources ?? DEFAULT_RESOURCES,
    securityContext: RESTRICTED,
    volumeMounts: mounts.map(({ volume, path }) => ({ name: volume.name, mountPath: path, readOnly: true })),
  }
}

const MODE = 0o440
/** Where the platform gives the user, it need not give the volumes that user's group. */
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

/** What a proxy mounts beside its documents; volumes are named by the prefixes and the name of the object. */
export const keyMounts = (
  keys: { readonly secretKeys: Keys; readonly caBundleKeys: Keys },
  prefixes: { readonly secret: string; readonly ca: string },
  defaultMode: number,
): Mount[] => [...secretMounts(keys, prefixes.secret, defaultMode), ...caBundleMounts(keys, prefixes.ca, defaultMode)]

/** Exactly the keys that are named; a missing one must show in readiness, not keep the pod from starting. */
function secretMounts(
  { secretKeys, caBundleKeys }: { readonly secretKeys: Keys; readonly caBundleKeys: Keys },
  prefix: string,
  defaultMode: number,
): Mount[] {
  return [...secretKeys]
    .filter(([name]) => !caBundleKeys.has(name))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, keys]) => ({
      volume: {
        name: dnsLabel(`${prefix}-${name}`),
        secret: {
          secretName: name,
          optional: true,
          defaultMode,
          items: itemsOf(keys),
        },
      },
      path: `${PATHS.secrets}/${name}`,
    }))
}

const itemsOf = (keys: ReadonlySet<string>) => [...keys].sort().map((key) => ({ key, path: key }))

/**
 * CA certificates from ConfigMaps lie where secrets do, so that references need not say which of the two they are; one of
 * the same name as a Secret shares its directory.
 */
const caBundleMounts = (
  { caBundleKeys, secretKeys }: { readonly secretKeys: Keys; readonly caBundleKeys: Keys },
  prefix: string,
  defaultMode: number,
): Mount[] =>
  [...caBundleKeys]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, keys]) => {
      const configMap = { name, optional: true, items: itemsOf(keys) }
      const beside = secretKeys.get(name)
      const source =
        beside === undefined
          ? { configMap }
          : {
              projected: {
                defaultMode,
                sources: [{ secret: { name, optional: true, items: itemsOf(beside) } }, { configMap }],
              },
            }
      return { volume: { name: dnsLabel(`${prefix}-${name}`), ...source }, path: `${PATHS.secrets}/${name}` }
    })

/** Who the proxy is when it asks the API server for its keys. */
export const clusterMount = (name: string, defaultMode: number): Mount => ({
  volume: {
    name,
    projected: {
      defaultMode,
      sources: [
        { serviceAccountToken: { path: 'token', expirationSeconds: 3600 } },
        { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
      ],
    },
  },
  path: PATHS.cluster,
})
