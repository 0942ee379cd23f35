import { METADATA_RANGES } from '../../core/index.ts'
import type { KubeObject } from '../../kube/index.ts'
import { adminPortOf, owned, type RemoteProxy, selectorLabels } from './remote-proxy.ts'

/** Link-local addresses of NodeLocal DNSCache: where a cluster has it, pods ask there. */
const NODE_LOCAL_DNS = '169.254.20.10/32'

/**
 * Who may talk to the pods and where they may go: the port from everywhere, metrics from where `metricsFrom` says; out to DNS,
 * to the ports of the configured URLs and of the store, never to link-local addresses (metadata services) but DNS.
 */
export function networkPolicyOf(proxy: RemoteProxy): KubeObject {
  const ports = portsOf(proxy)
  return owned(proxy, 'networking.k8s.io/v1', 'NetworkPolicy', {
    spec: {
      podSelector: { matchLabels: selectorLabels(proxy) },
      policyTypes: ['Ingress', 'Egress'],
      ingress: [
        { ports: [{ port: proxy.port, protocol: 'TCP' }] },
        ...(proxy.metricsFrom.length === 0
          ? []
          : [{ from: proxy.metricsFrom, ports: [{ port: adminPortOf(proxy), protocol: 'TCP' }] }]),
      ],
      egress: [
        {
          to: [
            {
              namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'kube-system' } },
              podSelector: { matchLabels: { 'k8s-app': 'kube-dns' } },
            },
            { ipBlock: { cidr: NODE_LOCAL_DNS } },
          ],
          ports: [
            { port: 53, protocol: 'UDP' },
            { port: 53, protocol: 'TCP' },
          ],
        },
        ...(ports.length === 0
          ? []
          : [
              {
                to: [
                  { ipBlock: { cidr: '0.0.0.0/0', except: METADATA_RANGES.ipv4 } },
                  { ipBlock: { cidr: '::/0', except: METADATA_RANGES.ipv6 } },
                ],
                ports: ports.map((port) => ({ port, protocol: 'TCP' })),
              },
            ]),
        ...proxy.egress,
      ],
    },
  })
}

/** Policies are judged where the API server itself listens: behind its Service, usually here. */
const API_SERVER_PORT = 6443

/** Ports of all URLs and of the store, each once, in order. */
function portsOf({ urls, storePorts, needsClusterToken }: RemoteProxy): number[] {
  const fromUrls = urls.flatMap((text) => {
    if (!URL.canParse(text)) return []
    const { port, protocol } = new URL(text)
    return [port === '' ? (protocol === 'http:' ? 80 : 443) : Number(port)]
  })
  return [...new Set([...fromUrls, ...storePorts, ...(needsClusterToken ? [API_SERVER_PORT] : [])])].sort(
    (a, b) => a - b,
  )
}
