import { z } from 'zod'
import { conditions, generation, OBSERVED_GENERATION } from '../external-auth-status.ts'
import { metadataEgress } from './metadata-access.ts'
import { int32, objectName, origins } from '../../fields/index.ts'

/** An object of Kubernetes itself, which the API server judges when it is applied. */
const anything = (description: string) => z.record(z.string(), z.unknown()).describe(description)

/**
 * Fields of an MCPRemoteProxy that say how its pods run in a cluster (kubernetes.md §3); `extauth proxy` does not need them.
 * All extend the specification.
 */
export const podFields = () => ({
  replicas: int32(0, 1000).optional().describe('Pods. Absent: left to an autoscaler, 1 at first.'),
  image: z
    .string()
    .min(1)
    .max(512)
    .regex(/^[a-zA-Z0-9][a-zA-Z0-9._:/@-]*$/, { error: 'expected the reference of an image' })
    .optional()
    .describe("Image of the proxy. Default the operator's."),
  resources: anything('Requests and limits of the container.').optional(),
  podTemplateSpec: anything('Merged into the pod template (strategic merge).').optional(),
  serviceAccountName: objectName().optional().describe('Instead of one that the operator makes.'),
  metricsFrom: z.array(anything('A peer of a NetworkPolicy.')).max(64).optional().describe('Who may read metrics.'),
  egress: z
    .array(
      anything('An egress rule of a NetworkPolicy, which reaches no metadata service.').superRefine((rule, context) => {
        for (const { path, message } of metadataEgress(rule))
          context.addIssue({ code: 'custom', message, path: [...path] })
      }),
    )
    .max(64)
    .optional()
    .describe('Where the pods may connect to beside what the configuration names.'),
  allowedOrigins: origins().optional().describe('Origins that browsers may call from, or "*".'),
})

/** What the operator writes into the status of kinds that it does not run. */
export const referringStatus = () =>
  z.strictObject({
    observedGeneration: generation().optional().describe(OBSERVED_GENERATION),
    conditions: conditions().optional(),
  })

/** `status` of MCPRemoteProxy, as the operator writes it. */
export const remoteProxyStatus = () =>
  z.strictObject({
    observedGeneration: generation().optional().describe(OBSERVED_GENERATION),
    url: z.string().max(2048).optional().describe('Where pods of the cluster reach it.'),
    externalAuthConfigHash: z
      .string()
      .max(64)
      .optional()
      .describe('`configHash` of what `externalAuthConfigRef` names, as the pods run it.'),
    authServerConfigHash: z
      .string()
      .max(64)
      .optional()
      .describe('`configHash` of what `authServerRef` names, as the pods run it.'),
    oidcConfigHash: z
      .string()
      .max(64)
      .optional()
      .describe('`configHash` of what `oidcConfigRef` names, as the pods run it.'),
    replicas: int32(0, 2_147_483_647).optional().describe('Pods that are there.'),
    readyReplicas: int32(0, 2_147_483_647).optional().describe('Pods that are ready.'),
    selector: z.string().max(1024).optional().describe('Labels of its pods, for autoscalers.'),
    conditions: conditions().optional(),
  })
