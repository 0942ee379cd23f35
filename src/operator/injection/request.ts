import type { KubeObject } from '../../kube/index.ts'
import type { PodKeys } from '../references.ts'

/** What the annotations of a pod ask for. */
export interface InjectionRequest {
  readonly config: string
  readonly targetPort: number
  readonly listenPort: number
  /** ConfigMap whose key `callers.yaml` holds an `auth` section. */
  readonly callers: string
}

/** Key of the callers' ConfigMap. */
export const CALLERS_KEY = 'callers.yaml'
export const DEFAULT_LISTEN_PORT = 8080
const RESERVED_PORT = 8081

export type InjectionRead =
  | { readonly wanted: false }
  | { readonly wanted: true; readonly request: InjectionRequest; readonly problems?: undefined }
  | { readonly wanted: true; readonly problems: readonly string[]; readonly request?: undefined }

const DNS_NAME = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/

/** Reads label and annotations of a pod; what is missing or wrong is said in words that name the annotation. */
export function readInjection(pod: Pick<KubeObject, 'metadata' | 'spec'>, keys: PodKeys): InjectionRead {
  const { labels = {}, annotations = {} } = pod.metadata
  if (labels[keys.inject] !== 'true') return { wanted: false }
  const problems: string[] = []
  const named = (key: string, what: string): string => {
    const value = annotations[key] ?? ''
    if (value === '') problems.push(`the annotation ${key} is missing, expected ${what}`)
    else if (value.length > 253 || !DNS_NAME.test(value))
      problems.push(`the annotation ${key} is no name, expected ${what}`)
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
  const config = named(keys.externalAuth, 'the name of an MCPExternalAuthConfig in the same namespace')
  const callers = named(keys.callers, `the name of a ConfigMap whose key ${CALLERS_KEY} holds an auth section`)
  const targetPort = port(keys.targetPort, 'the port on which the MCP server listens in this pod')
  const listenPort = port(keys.listenPort, 'a port for the proxy', DEFAULT_LISTEN_PORT)
  if (listenPort !== 0 && listenPort === targetPort)
    problems.push(`the annotations ${keys.targetPort} and ${keys.listenPort} name the same port`)
  for (const used of [listenPort, targetPort])
    if (used === RESERVED_PORT) problems.push(`port ${RESERVED_PORT} is the proxy's own, for probes and metrics`)
  problems.push(...podProblems(pod, listenPort, targetPort))
  return problems.length > 0
    ? { wanted: true, problems }
    : { wanted: true, request: { config, callers, targetPort, listenPort } }
}

interface PodSpec {
  readonly hostNetwork?: boolean
  readonly containers?: readonly {
    readonly name?: string
    readonly ports?: readonly { readonly containerPort?: number }[]
  }[]
}

/** What cannot run beside the proxy. */
function podProblems({ spec }: Pick<KubeObject, 'spec'>, listenPort: number, targetPort: number): string[] {
  const { hostNetwork, containers = [] } = (spec ?? {}) as PodSpec
  const problems: string[] = []
  if (hostNetwork === true)
    problems.push(
      'hostNetwork: true shares the loopback of the node, so the MCP server could be reached past the proxy',
    )
  for (const { name = '', ports = [] } of containers) {
    if (name === 'extauth') continue
    for (const { containerPort } of ports)
      if (containerPort === listenPort && containerPort !== targetPort)
        problems.push(`container ${name} already has port ${listenPort}; set another listen-port`)
  }
  return problems
}
