import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { KubeObject } from '../../kube/index.ts'
import { shortened } from '../names.ts'
import type { PodKeys } from '../references.ts'
import { clusterMount, DRAIN_SECONDS, keyMounts, type Mount, proxyContainer, RUN_AS } from '../proxy-container.ts'
import { ADMIN_PORT, PATHS } from '../remote-proxy/remote-proxy.ts'
import type { SidecarCallers } from './callers.ts'
import { CALLERS_KEY, CONTAINER, type InjectionRequest, VOLUMES } from './request.ts'

const CALLERS_PATH = '/etc/extauth-callers'
/** The operator does not set the pod's group, so files are readable by all; only this container mounts them. */
const MODE = 0o444

/** Minimum grace period of a pod in seconds: the kubelet kills it at its end, even with requests in flight. */
const LEAST_GRACE_SECONDS = DRAIN_SECONDS + 15
const GRACE = '/spec/terminationGracePeriodSeconds'

const DEFAULT_RESOURCES = { requests: { cpu: '50m', memory: '96Mi' }, limits: { memory: '384Mi' } }

/** Characters of a name in Kubernetes. */
const MAX_NAME = 253

/**
 * The ConfigMap that the controller creates for a config when a pod requests it: its documents, without pod-specific
 * content.
 */
export const injectionConfigMapName = (config: string): string => shortened(`extauth-inject-${config}`, MAX_NAME)

/** Keys of Secrets and ConfigMaps are those of the config and of the callers. */
export interface InjectionSettings extends SidecarCallers {
  readonly image: string
  readonly keys: PodKeys
  /** False: runs as the user set by the pod or the platform. Default true: the user of the image. */
  readonly fixedUser?: boolean
  /** `limits` and `requests` of the sidecar. */
  readonly resources?: object
}

export interface PatchOperation {
  readonly op: 'add' | 'replace'
  readonly path: string
  readonly value: unknown
}

interface Named {
  readonly name?: string
}

interface Container extends Named {
  readonly command?: readonly string[]
  readonly args?: readonly string[]
  readonly restartPolicy?: string
}

interface PodSpec {
  readonly terminationGracePeriodSeconds?: number
  readonly initContainers?: readonly Container[]
  readonly volumes?: readonly Named[]
}

/**
 * JSON patch (RFC 6902) that adds the proxy to a pod as a native sidecar: first init container, restart policy
 * Always, with a startup probe that delays the others. Idempotent.
 */
export function injectionPatch(
  pod: Pick<KubeObject, 'metadata' | 'spec'>,
  request: InjectionRequest,
  settings: InjectionSettings,
): PatchOperation[] {
  const spec = (pod.spec ?? {}) as PodSpec
  const volumes = volumesOf(request, settings)
  const container = containerOf(request, settings, volumes)
  const hash = createHash('sha256')
    .update(JSON.stringify([container, volumes]))
    .digest('hex')
    .slice(0, 16)
  const others = (spec.initContainers ?? []).filter(({ name }) => name !== CONTAINER)
  const injected = new Set(volumes.map(({ volume }) => volume.name))
  const kept = (spec.volumes ?? []).filter(({ name }) => !(name !== undefined && injected.has(name)))
  const wanted: PatchOperation[] = [
    set('/spec/initContainers', [container, ...others], spec.initContainers !== undefined),
    set('/spec/volumes', [...kept, ...volumes.map(({ volume }) => volume)], spec.volumes !== undefined),
  ]
  const { terminationGracePeriodSeconds: graceSeconds } = spec
  // The proxy stops after the server, and drains then.
  if (graceSeconds === undefined || graceSeconds < LEAST_GRACE_SECONDS)
    wanted.push(set(GRACE, LEAST_GRACE_SECONDS, graceSeconds !== undefined))
  const { annotations } = pod.metadata
  if (annotations === undefined) wanted.push(set('/metadata/annotations', { [settings.keys.injected]: hash }, false))
  else
    wanted.push(
      set(`/metadata/annotations/${escape(settings.keys.injected)}`, hash, settings.keys.injected in annotations),
    )
  const isThere =
    isSidecar(spec.initContainers?.[0], container) &&
    volumes.every(({ volume }) => spec.volumes?.some(({ name }) => name === volume.name))
  // A second pass over its own result (reinvocation) changes nothing.
  const isDone = annotations?.[settings.keys.injected] === hash && isThere
  return isDone && wanted.every(({ path }) => path !== GRACE) ? [] : wanted
}

/**
 * Whether a container matches the desired sidecar: the annotation alone is not sufficient, since it is copied with
 * the pod. Other webhooks and the API server may have added mounts and defaults, or moved the image to a mirror.
 */
const isSidecar = (found: Container | undefined, wanted: Container): boolean =>
  found !== undefined &&
  found.name === wanted.name &&
  found.command === undefined &&
  found.restartPolicy === wanted.restartPolicy &&
  isDeepStrictEqual(found.args, wanted.args)

const set = (path: string, value: unknown, isThere: boolean): PatchOperation => ({
  op: isThere ? 'replace' : 'add',
  path,
  value,
})

/** A name as a step of a JSON pointer (RFC 6901 §3). */
const escape = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1')

function volumesOf({ config, callers }: InjectionRequest, settings: InjectionSettings): Mount[] {
  return [
    // Not optional: the kubelet waits until the controller has created it.
    { volume: { name: VOLUMES.config, configMap: { name: injectionConfigMapName(config) } }, path: PATHS.config },
    {
      volume: {
        name: VOLUMES.callers,
        configMap: { name: callers, items: [{ key: CALLERS_KEY, path: CALLERS_KEY }] },
      },
      path: CALLERS_PATH,
    },
    ...keyMounts(settings, VOLUMES, MODE),
    ...(settings.needsClusterToken ? [clusterMount(VOLUMES.cluster, MODE)] : []),
  ]
}

function containerOf(
  { config, targetPort, listenPort }: InjectionRequest,
  settings: InjectionSettings,
  volumes: readonly Mount[],
): Container {
  return proxyContainer({
    name: CONTAINER,
    image: settings.image,
    // Pod-specific settings are arguments, so that all pods share one ConfigMap.
    args: [
      'proxy',
      '--target',
      `http://127.0.0.1:${targetPort}`,
      '--external-auth',
      `${PATHS.config}/auth.yaml#${config}`,
      '--callers',
      `${CALLERS_PATH}/${CALLERS_KEY}`,
      '--listen',
      `:${listenPort}`,
      '--admin',
      `:${ADMIN_PORT}`,
      '--secrets-dir',
      PATHS.secrets,
      '--drain-grace',
      `${DRAIN_SECONDS}s`,
    ],
    restartPolicy: 'Always',
    ports: [
      { name: 'extauth', containerPort: listenPort, protocol: 'TCP' },
      { name: 'extauth-admin', containerPort: ADMIN_PORT, protocol: 'TCP' },
    ],
    adminPort: ADMIN_PORT,
    resources: settings.resources ?? DEFAULT_RESOURCES,
    security: { ...(settings.fixedUser === false ? {} : RUN_AS), seccompProfile: { type: 'RuntimeDefault' } },
    mounts: volumes,
  })
}
