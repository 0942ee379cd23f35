import { z } from 'zod'
import { METADATA_RANGES } from '../core/index.ts'

/** An egress rule of a NetworkPolicy, as Kubernetes has it. */
export interface EgressRule {
  readonly to: readonly object[]
  readonly ports: readonly object[]
}

/** What pods that the operator makes have of the cluster that they run in. */
export interface PodSettings {
  /** They run as the image's user; false: as the one that the platform gives them (OpenShift). */
  readonly fixedUser: boolean
  /** Where they ask for names. */
  readonly dns: EgressRule
  /** Where the API server is; undefined: anywhere at its usual ports. */
  readonly apiServer: EgressRule | undefined
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
}

/** Everywhere, but no metadata service. */
export const EVERYWHERE: EgressRule['to'] = [
  { ipBlock: { cidr: '0.0.0.0/0', except: METADATA_RANGES.ipv4 } },
  { ipBlock: { cidr: '::/0', except: METADATA_RANGES.ipv6 } },
]

const MAX_ENTRIES = 64
const labels = z.record(z.string(), z.unknown())
const rule = z.strictObject({
  // A peer without a selector or block would be none; an empty list would be everybody.
  to: z
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
    .max(MAX_ENTRIES),
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
export function readEgressRule(text: string): EgressRule | undefined {
  try {
    return rule.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}
