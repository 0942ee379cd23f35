import { z } from 'zod'
import { referredConfig, type ReferredConfig } from '../referred-config.ts'
import { goesWithType, needs, withRules } from '../../fields/index.ts'
import { introspectionClientRules } from '../auth-section.ts'
import { clusterFields, inlineFields } from './oidc-callers.ts'

const TYPES = ['kubernetesServiceAccount', 'inline'] as const

const spec = () =>
  withRules(
    z.strictObject({
      type: z.enum(TYPES).describe('Where the provider is described.'),
      // A namespace alone would restrict no caller.
      kubernetesServiceAccount: withRules(z.strictObject(clusterFields()), [needs('namespace', 'serviceAccount')])
        .optional()
        .describe('Callers are service accounts of the cluster.'),
      inline: withRules(z.strictObject(inlineFields()), introspectionClientRules(['clientId', 'clientSecretRef']))
        .optional()
        .describe('Callers are those of one OpenID provider.'),
    }),
    TYPES.map((type) => goesWithType(type, type, TYPES)),
  )

/**
 * The resource MCPOIDCConfig: accepted callers for all workloads that reference it (`oidcConfigRef`). Extends the
 * specification.
 */
export const mcpOidcConfig = () => referredConfig('MCPOIDCConfig', spec())

export interface MCPOIDCConfig extends ReferredConfig<'MCPOIDCConfig', z.output<ReturnType<typeof spec>>> {}
