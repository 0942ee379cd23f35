import { nearest } from '../../core/index.ts'
import type { KubeObject } from '../../kube/index.ts'
import { DEFAULT_API_GROUP } from '../../load/index.ts'
import type { PodKeys } from '../references.ts'

/** The injection settings in the annotations of a pod. */
export interface InjectionRequest {
  readonly config: string
  readonly targetPort: number
  readonly listenPort: number
  /** ConfigMap with an `auth` section under the key `callers.yaml`. */
  readonly callers: string
}

/** Name of the container of the proxy. */
export const CONTAINER = 'extauth'
/** Names of the proxy's volumes; those of Secrets and CA certificates are followed by the name of the object. */
export const VOLUMES = {
  config: 'extauth-config',
  callers: 'extauth-callers',
  cluster: 'extauth-cluster',
  secret: 'extauth-secret',
  ca: 'extauth-ca',
} as const
/** Key of the callers' ConfigMap. */
export const CALLERS_KEY = 'callers.yaml'
const DEFAULT_LISTEN_PORT = 8080
const RESERVED_PORT = 8081

export type InjectionRead =
  | { readonly wanted: false; readonly request?: undefined }
  | { readonly wanted: true; readonly request: InjectionRequest; readonly problems?: undefined }
  | { readonly wanted: true; readonly problems: readonly string[]; readonly request?: undefined }

const DNS_NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/

/** Describes a label value that injects nothing although it resembles a request; undefined without such a label. */
export function unclearLabel(labels: Readonly<Record<string, string>>, { inject }: PodKeys): string | undefined {
  const value = labels[inject]
  return value === undefined || value === 'true' || value === 'false'
    ? undefined
    : `the label ${inject} is ${JSON.stringify(value)}: nothing is injected, expected "true"`
}

/** Reads label and annotations of a pod; problems name the annotation. */
export function readInjection(pod: Pick<KubeObject, 'metadata' | 'spec'>, keys: PodKeys): InjectionRead {
  const { labels = {}, annotations = {} } = pod.metadata
  if (labels[keys.inject] !== 'true') return { wanted: false }
  const problems: string[] = []
  const named = (key: string, what: string): string => {
    const value = annotations[key] ?? ''
    if (value === '') problems.push(`the annotation ${key} is missing, expected ${what}`)
    else if (value.length > 253 || !DNS_NAME.test(value))
      problems.push(`the annotation ${key} is not a valid name, expected ${what}`)
    return value
  }
  const port = (key: string, what: string, fallback?: number): number => {
    const text = annotations[key]
    if (text === undefined && fallback !== undefined) return fallback
    const value = /^[1-9]\d{0,4}$/.test(text ?? '') ? Number(text) : 0
    if (value < 1 || value > 65_535)
      problems.push(`the annotation ${key} is ${text === undefined ? 'missing' : 'no port'}, expected ${what}`)
    return value
  }
  problems.push(...unknownAnnotations(annotations, keys))
  const config = named(keys.externalAuth, 'the name of an MCPExternalAuthConfig in the same namespace')
  const callers = named(keys.callers, `the name of a ConfigMap whose key ${CALLERS_KEY} holds an auth section`)
  const targetPort = port(keys.targetPort, 'the port on which the MCP server listens in this pod')
  const listenPort = port(keys.listenPort, 'a port for the proxy', DEFAULT_LISTEN_PORT)
  if (listenPort !== 0 && listenPort === targetPort)
    problems.push(`the annotations ${keys.targetPort} and ${keys.listenPort} name the same port`)
  for (const used of [listenPort, targetPort])
    if (used === RESERVED_PORT) problems.push(`port ${RESERVED_PORT} is the proxy's own, for probes and metrics`)
  problems.push(...podProblems(pod, { listen: listenPort, target: targetPort }, keys))
  return problems.length > 0
    ? { wanted: true, problems }
    : { wanted: true, request: { config, callers, targetPort, listenPort } }
}

/** Annotations with the prefix are meant for the operator: a misspelled one must not be ignored silently. */
function unknownAnnotations(annotations: Readonly<Record<string, string>>, keys: PodKeys): string[] {
  const prefix = keys.inject.slice(0, keys.inject.indexOf('/') + 1)
  const known: readonly string[] = [keys.externalAuth, keys.targetPort, keys.listenPort, keys.callers, keys.injected]
  return Object.keys(annotations)
    .filter((key) => key.startsWith(prefix) && !known.includes(key))
    .flatMap((key) => {
      const meant = nearest(
        key.slice(prefix.length),
        known.map((one) => one.slice(prefix.length)),
      )
      if (meant !== undefined) return [`the annotation ${key} is not known, did you mean ${prefix}${meant}?`]
      // In the group of another operator, other annotations may have a meaning there.
      return prefix === `${DEFAULT_API_GROUP}/`
        ? [`the annotation ${key} is not known, expected one of ${known.slice(0, -1).join(', ')}`]
        : []
    })
}

interface Container {
  readonly name?: string
  readonly restartPolicy?: string
  readonly ports?: readonly { readonly containerPort?: number; readonly protocol?: string }[]
}

interface PodSpec {
  readonly hostNetwork?: boolean
  readonly os?: { readonly name?: string }
  readonly containers?: readonly Container[]
  readonly initContainers?: readonly Container[]
  readonly volumes?: readonly { readonly name?: string }[]
}

/** Pod settings that are incompatible with the proxy. */
function podProblems({ metadata, spec }: Pick<KubeObject, 'metadata' | 'spec'>, ports: Ports, keys: PodKeys): string[] {
  const { hostNetwork, os, containers = [], initContainers = [], volumes = [] } = (spec ?? {}) as PodSpec
  const problems: string[] = []
  if (hostNetwork === true)
    problems.push(
      'hostNetwork: true shares the loopback of the node, so the MCP server could be reached past the proxy',
    )
  if (os?.name === 'windows') problems.push('os.name: windows, where the proxy does not run')
  const isInjected = metadata.annotations?.[keys.injected] !== undefined
  const others = [...initContainers.filter(({ name }) => !isInjected || name !== CONTAINER), ...containers]
  for (const { name } of others)
    if (name === CONTAINER) problems.push(`the container name ${CONTAINER} is reserved for the proxy; rename it`)
  for (const { name = '' } of isInjected ? [] : volumes)
    if (isOwnVolume(name)) problems.push(`the volume ${name} has a name reserved for the proxy; rename it`)
  // Init containers that finish before the others start no longer need their ports.
  const running = others.filter((one) => containers.includes(one) || one.restartPolicy === 'Always')
  for (const { name = '', ports: used = [] } of running)
    for (const { containerPort, protocol = 'TCP' } of used) {
      if (protocol !== 'TCP' || containerPort === undefined || name === CONTAINER) continue
      if (containerPort === ports.listen && ports.listen !== ports.target)
        problems.push(`container ${name} already has port ${containerPort}; set another listen-port`)
      if (containerPort === RESERVED_PORT && ports.target !== RESERVED_PORT)
        problems.push(
          `container ${name} already has port ${RESERVED_PORT}, which is the proxy's own, for probes and metrics`,
        )
    }
  return problems
}

const isOwnVolume = (name: string): boolean =>
  [VOLUMES.secret, VOLUMES.ca].some((prefix) => name.startsWith(`${prefix}-`)) ||
  Object.values(VOLUMES).some((own) => own === name)

interface Ports {
  readonly listen: number
  readonly target: number
}
