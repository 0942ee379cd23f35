import { z } from 'zod'
import { externalAuthStatus, type ExternalAuthStatus } from '../external-auth-status.ts'
import { goesWithType, later, metadata, type Metadata, needs, withRules } from '../../fields/index.ts'
import { introspectionClientRules } from '../auth-section.ts'
import { clusterFields, inlineFields } from './oidc-callers.ts'

const TYPES = ['kubernetesServiceAccount', 'inline'] as const

const spec = () =>
  withRules(
    z.strictObject({
      type: z.enum(TYPES).describe('Where the provider is described.'),
      // Alone, a namespace would restrict nobody.
      kubernetesServiceAccount: withRules(z.strictObject(clusterFields()), [needs('namespace', 'serviceAccount')])
        .optional()
        .describe('Callers are service accounts of the cluster.'),
      inline: withRules(z.strictObject(inlineFields()), introspectionClientRules(['clientId', 'clientSecretRef']))
        .optional()
        .describe('Callers are those of one OpenID provider.'),
    }),
    TYPES.map((type) => goesWithType(type, type, TYPES)),
  )

/** The resource MCPOIDCConfig: who calls, for all workloads that refer to it (`oidcConfigRef`). Extends the specification. */
export const mcpOidcConfig = () =>
  z.strictObject({
    apiVersion: z.string(),
    kind: z.literal('MCPOIDCConfig'),
    metadata: metadata(),
    spec: spec(),
    status: later(externalAuthStatus).optional(),
  })

export interface MCPOIDCConfig {
  readonly apiVersion: string
  readonly kind: 'MCPOIDCConfig'
  readonly metadata: Metadata
  readonly spec: z.output<ReturnType<typeof spec>>
  readonly status?: ExternalAuthStatus | undefined
}
