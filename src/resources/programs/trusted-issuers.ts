import { z } from 'zod'
import { goDuration, httpsUrl, secretRef, withRules } from '../../fields/index.ts'
import { withoutCel } from './grants-without-login.ts'
import { AUTH_SERVER_FIELDS, refusals, tabledFields } from '../manifest-fields/index.ts'
import { tokenLifetime } from './workload-rules.ts'

const TRUSTED = 'trustedIssuers[]'

const urls = () => z.array(z.string().min(1).max(2048)).min(1).max(50)

const jwtBearerGrant = () =>
  withRules(
    z.strictObject({
      maxAssertionAge: goDuration().describe('From `iat` to `exp` of the assertions, 24h at most.'),
      subjectBindings: z
        .array(
          z.strictObject({
            subject: z.string().min(1).max(256).describe('`sub`, byte for byte.'),
            allowedResources: urls().describe('The `resourceUrl` of routes that its tokens may be for.'),
          }),
        )
        .min(1)
        .max(50)
        .describe('Whose assertions count, and for what.'),
      acceptedAudiences: urls().optional().describe('What `aud` may be; the token endpoint when absent.'),
    }),
    [withoutCel(tokenLifetime('maxAssertionAge'))],
  )

/** `trustedIssuers` of the other program's group: the part without token exchange runs like `workloads`. */
export const trustedIssuers = () =>
  z
    .array(
      withRules(
        z.strictObject({
          issuerUrl: httpsUrl().describe('`iss`, byte for byte.'),
          jwksUrl: httpsUrl().optional().describe('Where its keys are; by discovery when absent.'),
          allowPrivateIPs: z.boolean().default(false).describe('Allow private addresses.'),
          caBundleRef: secretRef('certificates')
            .optional()
            .describe('CA certificates (PEM) that replace the system roots. Extends the specification.'),
          jwtBearerGrant: jwtBearerGrant().describe('Its assertions give tokens, each once.'),
          ...tabledFields(AUTH_SERVER_FIELDS, TRUSTED, []),
        }),
        refusals(AUTH_SERVER_FIELDS, TRUSTED),
      ),
    )
    .max(20)
