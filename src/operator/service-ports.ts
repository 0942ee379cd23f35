import type { KubeObject } from '../kube/index.ts'

/** Target ports of a Service. */
export interface ServicePorts {
  /** The port, or its name, in the pods; undefined if the Service does not have this port. */
  targetOf(port: number): number | string | undefined
}

const SERVICE_HOST = /^([a-z]([-a-z0-9]*[a-z0-9])?)(?:\.([a-z0-9]([-a-z0-9]*[a-z0-9])?)(?:\.svc(?:\..+)?)?)?$/

/** `namespace/name` of the Service that a host names, resolved from a pod of `namespace`; undefined for other hosts. */
export function serviceKey(host: string, namespace: string): string | undefined {
  const [, name, , of = namespace] = SERVICE_HOST.exec(host) ?? []
  return name === undefined ? undefined : `${of}/${name}`
}

interface Spec {
  readonly type?: string
  readonly clusterIP?: string
  readonly ports?: readonly { readonly port: number; readonly targetPort?: number | string }[]
}

/** NetworkPolicies apply behind the Service, where a packet has the port of the pod. */
export function servicePorts({ spec }: KubeObject): ServicePorts {
  const { type, clusterIP, ports = [] } = (spec ?? {}) as Spec
  // These names resolve to addresses of pods or external hosts: the port is not translated.
  const isDirect = type === 'ExternalName' || clusterIP === 'None'
  return {
    targetOf(port) {
      const found = ports.find((one) => one.port === port)
      return isDirect ? port : found === undefined ? undefined : (found.targetPort ?? port)
    },
  }
}
