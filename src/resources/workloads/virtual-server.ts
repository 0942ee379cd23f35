import { z } from 'zod'
import { embeddedAuthServer } from '../embedded-auth-server.ts'
import { oidcConfig, oidcConfigRef } from './oidc-callers.ts'
import { exclusive, withCel, withRules, httpUrl, objectName, segmentName } from '../../fields/index.ts'
import { telemetryConfigRef, TRACES } from './telemetry.ts'
import { EXTERNAL_AUTH, reference, resourceUrl } from './workload-fields.ts'

/** How a VirtualMCPServer authenticates to backends: by discovered configs or by a referenced one. */
const outgoing = () =>
  z.looseObject({
    type: z.enum(['discovered', 'externalAuthConfigRef']).optional().describe('Where the config comes from.'),
    externalAuthConfigRef: reference().optional().describe(EXTERNAL_AUTH),
  })

/** The supported part of a VirtualMCPServer's `spec` (authserver.md §2.4). */
export const virtualServerSpec = () =>
  z.looseObject({
    outgoingAuth: z
      .looseObject({
        default: outgoing().optional().describe('For backends without an entry of their own.'),
        backends: withCel(
          z.record(z.string().max(63), outgoing()).meta({ maxProperties: 1000 }),
          'self.all(name, size(name) <= 63)',
          'expected names of at most 63 characters',
        )
          .refine((map) => Object.keys(map).length <= 1000, { error: 'expected at most 1000 entries' })
          .optional()
          .describe('For single backends, by name. Extends the specification.'),
      })
      .optional()
      .describe('How the workload authenticates to its backends.'),
    authServerConfig: embeddedAuthServer()
      .optional()
      .describe('Embedded authorization server for the callers. Extends the specification.'),
    incomingAuth: withRules(
      z.looseObject({
        type: z.enum(['anonymous', 'oidc']).optional().describe('Mode of the authentication of callers.'),
        oidcConfig: oidcConfig().optional().describe('Who may call, as one OpenID provider.'),
        oidcConfigRef: oidcConfigRef().optional().describe('Who may call, from an MCPOIDCConfig.'),
      }),
      [exclusive('oidcConfig', 'oidcConfigRef')],
    )
      .optional()
      .describe('Who may call.'),
    resourceUrl: resourceUrl(),
    routeNames: withCel(
      z.record(z.string().max(63), segmentName()).meta({ maxProperties: 1000 }),
      'self.all(name, size(name) <= 63)',
      'expected names of at most 63 characters',
    )
      .refine((map) => Object.keys(map).length <= 1000, { error: 'expected at most 1000 entries' })
      .optional()
      .describe(
        'Names of routes by backend. Default: the name of the backend, and `SERVER-BACKEND` where another route has that. Extends the specification.',
      ),
    telemetryConfigRef: telemetryConfigRef().optional().describe(TRACES),
  })

/** `status` of VirtualMCPServer: its backends. Go writes an empty string for absent values. */
export const virtualServerStatus = () =>
  z.looseObject({
    discoveredBackends: z
      .array(
        z.looseObject({
          name: segmentName(),
          url: z.union([z.literal(''), httpUrl()]).optional(),
          authConfigRef: z.union([z.literal(''), objectName(), reference()]).optional(),
        }),
      )
      .max(1000)
      .optional(),
  })

export type VirtualServerSpec = z.output<ReturnType<typeof virtualServerSpec>>
export type VirtualServerStatus = z.output<ReturnType<typeof virtualServerStatus>>
