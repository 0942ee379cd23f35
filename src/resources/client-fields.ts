import { z } from 'zod'
import { filePath, secretRef, withCel, type Rule } from '../fields/index.ts'
import { clientAuth, oneClient } from './client-auth.ts'

/** How the client authenticates at the token endpoint (RFC 6749 §2.3.1, RFC 7523 §2.2). */
const CLIENT_AUTH_METHODS = ['client_secret_basic', 'client_secret_post', 'private_key_jwt'] as const

/** Fields of an OAuth client besides its URL, identifier and secret. */
export const clientFields = () => ({
  clientAuth: clientAuth()
    .optional()
    .describe('How we authenticate, in place of the fields for it beside. Extends the specification.'),
  clientAuthMethod: z
    .enum(CLIENT_AUTH_METHODS)
    .default('client_secret_basic')
    .describe('How the client authenticates. Extends the specification.'),
  clientKeySecretRef: secretRef('client key')
    .optional()
    .describe('Private key (JWK or PKCS #8 PEM) for private_key_jwt. Extends the specification.'),
  caCertPath: filePath('certificates')
    .optional()
    .describe('CA certificates that replace the system roots. Extends the specification.'),
  insecureAllowHttp: z
    .boolean()
    .default(false)
    .describe('Allow plain http beyond loopback and in-cluster names. Extends the specification.'),
})

/** The header for the token; `Authorization` when empty or unset. */
export const tokenHeaderName = () =>
  z
    .string()
    .max(256)
    .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]*$/, { error: 'expected a header name (RFC 9110 §5.1)' })
    .optional()
    .transform((name) => (name === '' ? undefined : name))

/** `clientAuth` excludes the top-level fields; `clientAuthMethod` may repeat its default. */
export const exclusiveClientAuthentication: Rule = oneClient(['clientId', 'clientSecretRef', 'clientKeySecretRef'], {
  defaults: { clientAuthMethod: 'client_secret_basic' },
})

/** Required: either this field or `clientAuth`. */
export const saidHereOrInClientAuth = (field: string): Rule => ({
  message: 'missing, needed where there is no "clientAuth"',
  at: field,
  holds: (value) => value[field] !== undefined || value['clientAuth'] !== undefined,
  cel: `has(self.${field}) || has(self.clientAuth)`,
  json: { anyOf: [{ required: [field] }, { required: ['clientAuth'] }] },
})

/** `private_key_jwt` needs a client identifier and a key. */
export const keyForAssertions: Rule = {
  message: '"private_key_jwt" needs "clientId" and "clientKeySecretRef"',
  at: 'clientAuthMethod',
  holds: (value) =>
    value.clientAuthMethod !== 'private_key_jwt' ||
    (value.clientKeySecretRef !== undefined && value.clientId !== undefined),
  cel: "!has(self.clientAuthMethod) || self.clientAuthMethod != 'private_key_jwt' || (has(self.clientKeySecretRef) && has(self.clientId))",
  json: {
    anyOf: [
      { properties: { clientAuthMethod: { not: { const: 'private_key_jwt' } } } },
      { required: ['clientKeySecretRef', 'clientId'] },
    ],
  },
}

/** Map of short strings, such as query and form parameters. */
export const stringMap = (max: number) =>
  withCel(
    z
      .record(z.string().min(1).max(256), z.string().max(4096))
      .refine((map) => Object.keys(map).length <= max, { error: `expected at most ${max} entries` })
      .meta({ maxProperties: max }),
    "self.all(name, name != '' && size(name) <= 256)",
    'expected names of 1 to 256 characters',
  )

/** Rejects parameters that mcp-extauth sets itself; `who` sets them. */
export function reservedNames(field: string, names: readonly string[], who: string): Rule {
  return {
    message: `expected none of the parameters that ${who} sets itself: ${names.join(', ')}`,
    at: field,
    holds: ({ [field]: params }) =>
      typeof params !== 'object' || params === null || !names.some((name) => Object.hasOwn(params, name)),
    cel: `!has(self.${field}) || self.${field}.all(k, !(k in [${names.map((name) => `'${name}'`).join(', ')}]))`,
    json: { properties: { [field]: { propertyNames: { not: { enum: [...names] } } } } },
  }
}
