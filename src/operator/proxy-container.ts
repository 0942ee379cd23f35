import type { Keys } from './key-refs.ts'
import { dnsLabel } from './names.ts'
import { PATHS } from './remote-proxy/remote-proxy.ts'

/** Seconds for in-flight responses after SIGTERM. */
export const DRAIN_SECONDS = 30
/** The user of the image. */
export const RUN_AS = { runAsUser: 65532, runAsGroup: 65532 } as const

/** Security settings with which a container passes the Pod Security Standard `restricted`. */
const RESTRICTED = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  runAsNonRoot: true,
  capabilities: { drop: ['ALL'] },
} as const

export interface Mount {
  readonly volume: { readonly name: string; readonly [source: string]: unknown }
  readonly path: string
}

/** The container that runs the proxy. */
export interface ProxyContainer {
  readonly name: string
  readonly image: string
  readonly env?: readonly object[]
  readonly args: readonly string[]
  /** `Always`: a native sidecar. */
  readonly restartPolicy?: 'Always'
  readonly ports: readonly object[]
  readonly lifecycle?: object
  readonly resources: object
  readonly securityContext: object
  readonly volumeMounts: readonly object[]
}

/** The differences between a sidecar and the container of a dedicated pod. */
export interface ContainerOptions extends Pick<
  ProxyContainer,
  'name' | 'image' | 'env' | 'args' | 'restartPolicy' | 'ports' | 'lifecycle' | 'resources'
> {
  /** Number or name of the port of the admin listener. */
  readonly adminPort: number | string
  readonly mounts: readonly Mount[]
  /** Security settings besides those of the Pod Security Standard `restricted`. */
  readonly security?: object
}

/** Builds the container. The order of its fields is part of the hash by which an injected pod is recognized. */
export function proxyContainer(options: ContainerOptions): ProxyContainer {
  const { name, image, env = [], args, restartPolicy, ports, lifecycle, resources, mounts, security } = options
  const probe = (path: string) => ({ httpGet: { path, port: options.adminPort } })
  // A restart fixes neither a missing secret nor an unavailable identity provider: the liveness probe checks health
  // only.
  const probes = {
    startupProbe: { ...probe('/health'), periodSeconds: 1, failureThreshold: 60 },
    readinessProbe: { ...probe('/readiness'), periodSeconds: 5 },
    livenessProbe: { ...probe('/health'), periodSeconds: 10, failureThreshold: 3 },
  }
  return {
    name,
    image,
    ...(env.length === 0 ? {} : { env }),
    args,
    ...(restartPolicy === undefined ? {} : { restartPolicy }),
    ports,
    ...probes,
    ...(lifecycle === undefined ? {} : { lifecycle }),
    resources,
    securityContext: { ...RESTRICTED, ...security },
    volumeMounts: mounts.map(({ volume, path }) => ({ name: volume.name, mountPath: path, readOnly: true })),
  }
}

/** The mounts of a proxy besides its documents; volume names consist of a prefix and the name of the object. */
export const keyMounts = (
  keys: { readonly secretKeys: Keys; readonly caBundleKeys: Keys },
  prefixes: { readonly secret: string; readonly ca: string },
  defaultMode: number,
): Mount[] => [...secretMounts(keys, prefixes.secret, defaultMode), ...caBundleMounts(keys, prefixes.ca, defaultMode)]

/** Mounts exactly the referenced keys; a missing one must show in readiness, not block the start of the pod. */
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
 * CA certificates from ConfigMaps are mounted beside secrets, so that references need not distinguish them; one with
 * the name of a Secret shares its directory.
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

/** The service account of the proxy, for reading the keys of the API server. */
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
