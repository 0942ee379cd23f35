import { z } from 'zod'
import { METADATA_RANGES } from '../core/index.ts'

/** An egress rule of a NetworkPolicy, as Kubernetes has it. */
export interface EgressRule {
  readonly to: readonly object[]
  readonly ports: readonly object[]
}

/** Which NetworkPolicy a proxy gets where it says nothing itself. */
export interface ProxyPolicy {
  readonly enabled: boolean
  /** Where callers may connect from: peers of a NetworkPolicy. Undefined: everywhere. */
  readonly ingressFrom?: readonly object[] | undefined
}

/** What pods that the operator makes have of the cluster that they run in. */
export interface PodSettings {
  /** They run as the image's user; false: as the one that the platform gives them (OpenShift). */
  readonly fixedUser: boolean
  /** Where they ask for names. */
  readonly dns: EgressRule
  /** Where the API server is; undefined: anywhere at its usual ports. */
  readonly apiServer: EgressRule | undefined
  readonly policy: ProxyPolicy
  /** Namespace of an operator that reads their readiness. */
  readonly operatorNamespace?: string | undefined
}

/** Link-local addresses of NodeLocal DNSCache: where a cluster has it, pods ask there. */
const NODE_LOCAL_DNS = '169.254.20.10/32'

/** A cluster as most are: the DNS of kube-system, and that of the node. */
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

/** Everywhere, but no metadata service. */
export const EVERYWHERE: EgressRule['to'] = [
  { ipBlock: { cidr: '0.0.0.0/0', except: METADATA_RANGES.ipv4 } },
  { ipBlock: { cidr: '::/0', except: METADATA_RANGES.ipv6 } },
]

const MAX_ENTRIES = 64
const labels = z.record(z.string(), z.unknown())
// A peer without a selector or block would be none; an empty list would be everybody.
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

/** An egress rule from its JSON, `{"to": […], "ports": […]}`; undefined when it is none, or leads to everybody. */
export const readEgressRule = (text: string): EgressRule | undefined => readJson(rule, text)

/** The same for `{"enabled": true, "ingressFrom": […]}`. */
export const readProxyPolicy = (text: string): ProxyPolicy | undefined => readJson(proxyPolicy, text)

function readJson<T>(schema: z.ZodType<T>, text: string): T | undefined {
  try {
    return schema.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}
