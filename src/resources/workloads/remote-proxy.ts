import { z } from 'zod'
import { roleArn } from '../aws/role-arn.ts'
import { conditions, generation, OBSERVED_GENERATION } from '../external-auth-status.ts'
import { metadataEgress } from './metadata-access.ts'
import { int32, objectName, origins, secretRef, withCel } from '../../fields/index.ts'

const labels = (description: string) =>
  withCel(
    z.record(z.string().min(1).max(317), z.string().max(4096)).meta({ maxProperties: 100 }),
    'self.all(name, size(name) >= 1 && size(name) <= 317)',
    'expected names of at most 317 characters',
  )
    .refine((map) => Object.keys(map).length <= 100, { error: 'expected at most 100 entries' })
    .optional()
    .describe(description)
const metadataOf = (what: string) => ({
  annotations: labels(`Additional annotations of ${what}; those of mcp-extauth are reserved.`),
  labels: labels(`Additional labels of ${what}; those of mcp-extauth are reserved.`),
})

/** Additions to the objects that the operator creates; its own settings take precedence. */
const resourceOverrides = () =>
  z.strictObject({
    proxyDeployment: z
      .strictObject({
        ...metadataOf('the Deployment'),
        podTemplateMetadataOverrides: z.strictObject(metadataOf('its pods')).optional().describe('Of the pods.'),
        env: z
          .array(
            z.strictObject({
              name: z
                .string()
                .min(1)
                .max(253)
                .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, { error: 'expected the name of a variable' })
                .describe('Its name.'),
              value: z.string().max(32_768).describe('Its value.'),
            }),
          )
          .max(100)
          .optional()
          .describe('Variables of the proxy.'),
        imagePullSecrets: z
          .array(z.strictObject({ name: objectName().describe('Name of a Secret.') }))
          .max(16)
          .optional()
          .describe('With which its image is pulled.'),
      })
      .optional()
      .describe('Of the Deployment.'),
    proxyService: z.strictObject(metadataOf('the Service')).optional().describe('Of the Service.'),
  })
export type ResourceOverrides = z.output<ReturnType<typeof resourceOverrides>>

/** A DNS name whose first label may be `*`. */
const hostname = () =>
  z
    .string()
    .max(253)
    .regex(/^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/, {
      error: 'expected the name of a host, such as "mcp.example.com"',
    })

/** A Kubernetes object, which the API server validates when it is applied. */
const anything = (description: string) => z.record(z.string(), z.unknown()).describe(description)

/** Settings of the HorizontalPodAutoscaler. */
const autoscaling = () =>
  withCel(
    z.strictObject({
      minReplicas: int32(1, 1000).optional().describe('Fewest pods. Default 1.'),
      maxReplicas: int32(1, 1000).describe('Most pods.'),
      targetCPUUtilizationPercentage: int32(1, 1000)
        .optional()
        .describe('Average CPU usage of the pods, in percent of what they request. Default 80.'),
    }),
    '!has(self.minReplicas) || self.minReplicas <= self.maxReplicas',
    'expected minReplicas of at most maxReplicas',
  ).refine(({ minReplicas = 1, maxReplicas }) => minReplicas <= maxReplicas, {
    error: 'expected minReplicas of at most maxReplicas',
  })
export type Autoscaling = z.output<ReturnType<typeof autoscaling>>

/**
 * Fields of an MCPRemoteProxy for its pods in a cluster (kubernetes.md §3); `extauth proxy` ignores them. All extend
 * the specification.
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
  serviceAccount: objectName().optional().describe('The same as serviceAccountName.'),
  awsRoleArn: roleArn()
    .optional()
    .describe(
      'Role of AWS that the service account names which the operator makes (IRSA): the identity of the pods. Not beside serviceAccountName.',
    ),
  sessionAffinity: z
    .enum(['ClientIP', 'None'])
    .optional()
    .describe('Whether the Service sends one client to one pod. Default ClientIP, and None with sessionKeySecretRef.'),
  sessionKeySecretRef: secretRef('bytes')
    .optional()
    .describe(
      'Key that binds MCP session ids to callers, at least 32 bytes: all pods, and those that replace them, accept the same sessions.',
    ),
  autoscaling: autoscaling().optional().describe('Makes a HorizontalPodAutoscaler for the pods. Not beside replicas.'),
  resourceOverrides: resourceOverrides().optional().describe('More labels, annotations and variables of what is made.'),
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
  gateway: z
    .strictObject({
      parentRefs: z
        .array(anything('A Gateway, as an HTTPRoute names it.'))
        .min(1)
        .max(32)
        .describe('Gateways that lead to the Service.'),
      hostnames: z.array(hostname()).max(16).optional().describe('Names of hosts. Absent: those of the listeners.'),
    })
    .optional()
    .describe('Makes an HTTPRoute of the Gateway API that leads to the Service.'),
  ingress: z
    .strictObject({
      className: objectName().optional().describe('Ingress class. Absent: the default of the cluster.'),
      host: hostname().describe('Name of the host.'),
      tlsSecretName: objectName().optional().describe('Secret with the certificate of the host.'),
      annotations: labels('Annotations, which its controller reads.'),
    })
    .optional()
    .describe('Makes an Ingress that leads to the Service.'),
  networkPolicy: z
    .strictObject({
      enabled: z.boolean().optional().describe('False: the operator makes none for the pods. Default true.'),
      ingressFrom: z
        .array(anything('A peer of a NetworkPolicy.'))
        .min(1)
        .max(64)
        .optional()
        .describe('Where callers may connect from. Default everywhere.'),
    })
    .optional()
    .describe('The NetworkPolicy of the pods.'),
  allowedOrigins: origins().optional().describe('Origins that browsers may call from, or "*".'),
})

/** Status of kinds without pods of the operator. */
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
    externalURL: z.string().max(2048).optional().describe('URL that clients connect to, from `spec.externalURL`.'),
    serviceName: z.string().max(63).optional().describe('Its Service: what an HTTPRoute or Ingress names.'),
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
    telemetryConfigHash: z
      .string()
      .max(64)
      .optional()
      .describe('`configHash` of what `telemetryConfigRef` names, as the pods run it.'),
    toolConfigHash: z
      .string()
      .max(64)
      .optional()
      .describe('`configHash` of what `toolConfigRef` names, as the pods run it.'),
    replicas: int32(0, 2_147_483_647).optional().describe('Pods that are there.'),
    readyReplicas: int32(0, 2_147_483_647).optional().describe('Pods that are ready.'),
    selector: z.string().max(1024).optional().describe('Labels of its pods, for autoscalers.'),
    conditions: conditions().optional(),
  })
