import type { KubeObject } from '../kube/index.ts'

/** What a port of a Service leads to. */
export interface ServicePorts {
  /** The port, or its name, at which pods listen; undefined where the Service does not have this port. */
  targetOf(port: number): number | string | undefined
}

const SERVICE_HOST = /^([a-z]([-a-z0-9]*[a-z0-9])?)(?:\.([a-z0-9]([-a-z0-9]*[a-z0-9])?)(?:\.svc(?:\..+)?)?)?$/

/** `namespace/name` of the Service that a host names, seen from a pod of `namespace`; undefined for hosts that name none. */
export function serviceKey(host: string, namespace: string): string | undefined {
  const [, name, , of = namespace] = SERVICE_HOST.exec(host) ?? []
  return name === undefined ? undefined : `${of}/${name}`
}

interface Spec {
  readonly type?: string
  readonly clusterIP?: string
  readonly ports?: readonly { readonly port: number; readonly targetPort?: number | string }[]
}

/** Policies are evaluated behind the Service: there a packet has the port of the pod. */
export function servicePorts({ spec }: KubeObject): ServicePorts {
  const { type, clusterIP, ports = [] } = (spec ?? {}) as Spec
  // Names of these lead to the addresses of pods, or elsewhere: nothing translates the port.
  const isDirect = type === 'ExternalName' || clusterIP === 'None'
  return {
    targetOf(port) {
      const found = ports.find((one) => one.port === port)
      return isDirect ? port : found === undefined ? undefined : (found.targetPort ?? port)
    },
  }
}
