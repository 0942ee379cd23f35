import type { KubeObject } from '../../kube/index.ts'
import { type EgressRule, EVERYWHERE } from '../pod-settings.ts'
import { adminPortOf, owned, type RemoteProxy, selectorLabels } from './remote-proxy.ts'

/**
 * The NetworkPolicy of the pods. Ingress: the port from everywhere or from `ingressFrom`, metrics from `metricsFrom`.
 * Egress: DNS, the ports of the configured URLs and of the store. Link-local addresses (metadata services) are
 * excluded, except for DNS and, where a config uses EKS pod identity, its agent.
 */
export function networkPolicyOf(proxy: RemoteProxy): KubeObject {
  const ports = portsOf(proxy)
  const from = proxy.networkPolicy.ingressFrom ?? proxy.pods.policy.ingressFrom
  return owned(proxy, 'networking.k8s.io/v1', 'NetworkPolicy', {
    spec: {
      podSelector: { matchLabels: selectorLabels(proxy) },
      policyTypes: ['Ingress', 'Egress'],
      ingress: [
        { ...(from === undefined ? {} : { from }), ports: [{ port: proxy.port, protocol: 'TCP' }] },
        ...(proxy.pods.operatorNamespace === undefined
          ? []
          : [
              {
                from: [operatorIn(proxy.pods.operatorNamespace)],
                ports: [{ port: adminPortOf(proxy), protocol: 'TCP' }],
              },
            ]),
        ...(proxy.metricsFrom.length === 0
          ? []
          : [{ from: proxy.metricsFrom, ports: [{ port: adminPortOf(proxy), protocol: 'TCP' }] }]),
      ],
      egress: [
        proxy.pods.dns,
        ...(ports.length === 0
          ? []
          : [
              {
                to: EVERYWHERE,
                ports: ports.map((port) => ({ port, protocol: 'TCP' })),
              },
            ]),
        ...(proxy.needsClusterToken && proxy.pods.apiServer !== undefined ? [proxy.pods.apiServer] : []),
        ...(proxy.needsPodIdentity ? [POD_IDENTITY_AGENT] : []),
        ...proxy.egress,
      ],
    },
  })
}

/** The pods of the operator, which read the readiness of proxies. */
const operatorIn = (namespace: string): object => ({
  namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
  podSelector: {
    matchLabels: { 'app.kubernetes.io/name': 'mcp-extauth', 'app.kubernetes.io/component': 'operator' },
  },
})

/**
 * The agent of EKS pod identity, which returns only the role associated with the pod's service account. The metadata
 * service of the node, which returns the node's role, is never allowed.
 */
const POD_IDENTITY_AGENT: EgressRule = {
  to: [{ ipBlock: { cidr: '169.254.170.23/32' } }, { ipBlock: { cidr: 'fd00:ec2::23/128' } }],
  ports: [{ port: 80, protocol: 'TCP' }],
}

/** Policies apply to the address of the API server behind its Service, usually this port. */
const API_SERVER_PORT = 6443
/** Names of the API server's Service in a cluster. */
const API_SERVER = /^kubernetes(\.default(\.svc(\..+)?)?)?$/

/** Ports of all URLs and of servers without one, sorted and unique, except those of an API server with a rule of its own. */
function portsOf({ urls, services, ports, needsClusterToken, pods }: RemoteProxy): (number | string)[] {
  const hasOwnRule = needsClusterToken && pods.apiServer !== undefined
  const fromUrls = urls.flatMap((text) => {
    if (!URL.canParse(text)) return []
    const { port, protocol, hostname } = new URL(text)
    if (hasOwnRule && API_SERVER.test(hostname)) return []
    const asked = port === '' ? (protocol === 'http:' ? 80 : 443) : Number(port)
    return [services.get(hostname)?.targetOf(asked) ?? asked]
  })
  return [...new Set([...fromUrls, ...ports, ...(needsClusterToken && !hasOwnRule ? [API_SERVER_PORT] : [])])].sort(
    (a, b) => Number(a) - Number(b) || String(a).localeCompare(String(b)),
  )
}

/** Hosts of all URLs. */
export const hostsOf = (urls: readonly string[]): string[] =>
  urls.flatMap((text) => (URL.canParse(text) ? [new URL(text).hostname] : []))
