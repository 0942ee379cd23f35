import { createHash } from 'node:crypto'
import { ADMIN_PORT, ownedName, PATHS, type RemoteProxy, selectorLabels } from './remote-proxy.ts'

/** Seconds that a pod waits before SIGTERM until Services have forgotten it. */
const PRE_STOP_SECONDS = 5
/** Seconds that answers may go on after SIGTERM. */
const DRAIN_SECONDS = 30
/** Seconds for the last bytes. */
const MARGIN_SECONDS = 10
const USER = 65532

const DEFAULT_RESOURCES = { requests: { cpu: '100m', memory: '128Mi' }, limits: { memory: '512Mi' } }

/** Security settings with which a container passes the Pod Security Standard `restricted`. */
export const RESTRICTED = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  runAsNonRoot: true,
  capabilities: { drop: ['ALL'] },
} as const

interface Mount {
  readonly volume: { readonly name: string; readonly [source: string]: unknown }
  readonly path: string
}

/** The pod template of a proxy, before `podTemplateSpec` is merged into it. */
export function podTemplateOf(proxy: RemoteProxy): object {
  const mounts = mountsOf(proxy)
  return {
    metadata: {
      labels: { ...selectorLabels(proxy), 'app.kubernetes.io/component': 'mcp-remote-proxy' },
      annotations: { 'prometheus.io/scrape': 'true', 'prometheus.io/port': String(ADMIN_PORT) },
    },
    spec: {
      serviceAccountName: proxy.serviceAccountName ?? ownedName(proxy),
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: PRE_STOP_SECONDS + DRAIN_SECONDS + MARGIN_SECONDS,
      topologySpreadConstraints: [
        {
          maxSkew: 1,
          topologyKey: 'kubernetes.io/hostname',
          whenUnsatisfiable: 'ScheduleAnyway',
          labelSelector: { matchLabels: selectorLabels(proxy) },
        },
      ],
      securityContext: {
        runAsNonRoot: true,
        runAsUser: USER,
        runAsGroup: USER,
        fsGroup: USER,
        seccompProfile: { type: 'RuntimeDefault' },
      },
      containers: [containerOf(proxy, mounts)],
      volumes: mounts.map(({ volume }) => volume),
    },
  }
}

function containerOf(proxy: RemoteProxy, mounts: readonly Mount[]): object {
  const probe = (path: string) => ({ httpGet: { path, port: 'admin' } })
  return {
    name: 'extauth',
    image: proxy.image,
    args: ['proxy', '--config', PATHS.config, '--namespace', proxy.namespace, '--drain-grace', `${DRAIN_SECONDS}s`],
    ports: [
      { name: 'mcp', containerPort: proxy.port },
      { name: 'admin', containerPort: ADMIN_PORT },
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

function mountsOf(proxy: RemoteProxy): Mount[] {
  return [
    // Whole directories, never subPath: files under a subPath are not updated.
    { volume: { name: 'config', configMap: { name: ownedName(proxy) } }, path: PATHS.config },
    ...secretMounts(proxy.secretKeys),
    ...caBundleMounts(proxy.caBundleKeys),
    ...(proxy.needsClusterToken ? [CLUSTER_MOUNT] : []),
  ]
}

/** Exactly the keys that are named; a missing one must show in readiness, not keep the pod from starting. */
export function secretMounts(
  secretKeys: ReadonlyMap<string, ReadonlySet<string>>,
  prefix = 'secret',
  defaultMode = MODE,
): Mount[] {
  return [...secretKeys]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, keys]) => ({
      volume: {
        name: volumeName(prefix, name),
        secret: {
          secretName: name,
          optional: true,
          defaultMode,
          items: [...keys].sort().map((key) => ({ key, path: key })),
        },
      },
      path: `${PATHS.secrets}/${name}`,
    }))
}

/** CA certificates from ConfigMaps lie where secrets do, so that references need not say which of the two they are. */
const caBundleMounts = (caBundleKeys: ReadonlyMap<string, ReadonlySet<string>>): Mount[] =>
  [...caBundleKeys].map(([name, keys]) => ({
    volume: {
      name: volumeName('ca', name),
      configMap: { name, optional: true, items: [...keys].sort().map((key) => ({ key, path: key })) },
    },
    path: `${PATHS.secrets}/${name}`,
  }))

/** Who the proxy is when it asks the API server for its keys. */
export const CLUSTER_MOUNT: Mount = {
  volume: {
    name: 'cluster',
    projected: {
      defaultMode: MODE,
      sources: [
        { serviceAccountToken: { path: 'token', expirationSeconds: 3600 } },
        { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
      ],
    },
  },
  path: PATHS.cluster,
}

/** Names of volumes are DNS labels of at most 63 characters; names of Secrets may have dots and 253. */
export function volumeName(prefix: string, name: string): string {
  const plain = `${prefix}-${name.replaceAll('.', '-')}`
  if (plain.length <= 63 && !name.includes('.')) return plain
  const hash = createHash('sha256').update(name).digest('hex').slice(0, 8)
  return `${plain.slice(0, 54).replace(/-+$/, '')}-${hash}`
}
