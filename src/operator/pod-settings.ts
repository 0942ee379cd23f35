import { z } from 'zod'
import { METADATA_RANGES } from '../core/index.ts'

/** An egress rule of a NetworkPolicy. */
export interface EgressRule {
  readonly to: readonly object[]
  readonly ports: readonly object[]
}

/** The NetworkPolicy of a proxy without settings of its own. */
export interface ProxyPolicy {
  readonly enabled: boolean
  /** Allowed sources of callers: peers of a NetworkPolicy. Undefined: everywhere. */
  readonly ingressFrom?: readonly object[] | undefined
}

/** Cluster-specific settings of the pods that the operator creates. */
export interface PodSettings {
  /** Pods run as the image's user; false: as the user that the platform assigns (OpenShift). */
  readonly fixedUser: boolean
  /** The DNS servers. */
  readonly dns: EgressRule
  /** The address of the API server; undefined: anywhere at its usual ports. */
  readonly apiServer: EgressRule | undefined
  readonly policy: ProxyPolicy
  /** Namespace of an operator that reads their readiness. */
  readonly operatorNamespace?: string | undefined
}

/** Link-local address of NodeLocal DNSCache, used by pods of clusters that have it. */
const NODE_LOCAL_DNS = '169.254.20.10/32'

/** Settings of most clusters: the DNS of kube-system, and that of the node. */
export const DEFAULT_POD_SETTINGS: PodSettings = {
  fixedUser: true,
  dns: {
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
  apiServer: undefined,
  policy: { enabled: true },
}

/** Everywhere except metadata services. */
export const EVERYWHERE: EgressRule['to'] = [
  { ipBlock: { cidr: '0.0.0.0/0', except: METADATA_RANGES.ipv4 } },
  { ipBlock: { cidr: '::/0', except: METADATA_RANGES.ipv6 } },
]

const MAX_ENTRIES = 64
const labels = z.record(z.string(), z.unknown())
// A peer without a selector or block is invalid; an empty list would allow everything.
const peers = z
  .array(
    z
      .strictObject({
        ipBlock: z.strictObject({ cidr: z.string().min(1), except: z.array(z.string()).optional() }).optional(),
        namespaceSelector: labels.optional(),
        podSelector: labels.optional(),
      })
      .refine((peer) => Object.values(peer).some((part) => part !== undefined)),
  )
  .min(1)
  .max(MAX_ENTRIES)
const proxyPolicy = z.strictObject({ enabled: z.boolean().default(true), ingressFrom: peers.optional() })
const rule = z.strictObject({
  to: peers,
  ports: z
    .array(
      z.strictObject({
        port: z.int().min(1).max(65_535),
        protocol: z.enum(['TCP', 'UDP']).default('TCP'),
        endPort: z.int().min(1).max(65_535).optional(),
      }),
    )
    .min(1)
    .max(MAX_ENTRIES),
})

/** Parses an egress rule, `{"to": […], "ports": […]}`; undefined if it is invalid, or allows everything. */
export const readEgressRule = (text: string): EgressRule | undefined => readJson(rule, text)

/** Parses `{"enabled": true, "ingressFrom": […]}`. */
export const readProxyPolicy = (text: string): ProxyPolicy | undefined => readJson(proxyPolicy, text)

function readJson<T>(schema: z.ZodType<T>, text: string): T | undefined {
  try {
    return schema.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}
