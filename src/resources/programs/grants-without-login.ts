import { createPublicKey } from 'node:crypto'
import { z } from 'zod'
import {
  exclusive,
  goDuration,
  HTTP_URL,
  httpsUrl,
  isRecord,
  parseGoDuration,
  type Rule,
  scopes,
  secretRef,
  withRules,
} from '../../fields/index.ts'

/** Maximum lifetime of tokens without a login, because they can't be revoked. */
const MOST_LIFETIME = '1h'
const LEAST_LIFETIME = '1m'

/** RFC 7523 §2.1. */
export const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const CLIENT_CREDENTIALS = 'client_credentials'

/**
 * An identifier that isn't the URL of a metadata document, in the characters of RFC 6749 without space and colon (Basic
 * splits at it).
 */
const clientId = (what: string) =>
  z
    .string()
    .min(1)
    .max(128)
    .regex(/^[A-Za-z0-9][A-Za-z0-9._~-]*$/, { error: 'expected letters, digits, ".", "_", "~" and "-"' })
    .describe(what)

/** The property must be unique among the entries of a list. */
export const unique = (list: string, name: string): Rule => ({
  message: `expected each ${name} once`,
  at: list,
  holds: ({ [list]: entries }) => {
    const values = Array.isArray(entries)
      ? entries.flatMap((entry: unknown) => (isRecord(entry) && entry[name] !== undefined ? [entry[name]] : []))
      : []
    return new Set(values).size === values.length
  },
  cel: `!has(self.${list}) || self.${list}.all(p, self.${list}.exists_one(q, q.${name} == p.${name}))`,
})

/** Removes CEL for nested lists, where the API server's cost limit would be exceeded. */
export const withoutCel = ({ cel: _cel, ...rule }: Rule): Rule => rule

export const shortLifetime: Rule = {
  message: `expected ${LEAST_LIFETIME} to ${MOST_LIFETIME}`,
  at: 'lifetime',
  holds: ({ lifetime }) => {
    const ms = typeof lifetime === 'string' ? parseGoDuration(lifetime) : undefined
    // An invalid duration is reported separately.
    return ms === undefined || (ms >= 60_000 && ms <= 3_600_000)
  },
  cel: `!has(self.lifetime) || (duration(self.lifetime) >= duration('${LEAST_LIFETIME}') && duration(self.lifetime) <= duration('${MOST_LIFETIME}'))`,
}

/** Key location of a trusted assertion issuer. */
export const trustedKeys = () => ({
  jwksUrl: httpsUrl().optional().describe('Where its keys are; by discovery when absent.'),
  caBundleRef: secretRef('certificates').optional().describe('CA certificates (PEM) that replace the system roots.'),
  allowPrivateIP: z.boolean().default(false).describe('Allow private addresses.'),
})

/** Limits of tokens without a login. */
export const grantBounds = (scopesSay: string) => ({
  resources: z
    .array(z.string().max(2048).regex(HTTP_URL, { error: 'expected an http or https URL' }))
    .min(1)
    .max(16)
    .optional()
    .describe('The `resourceUrl` of routes that its tokens may be for; all that use this server when absent.'),
  scopes: scopes().optional().describe(scopesSay),
  lifetime: goDuration()
    .optional()
    .describe('Of its access tokens, 1m to 1h; `accessTokenLifespan`, an hour at most, when absent.'),
})

/** `identityAssertions` (clientauth.md §3, ID-JAG). */
export const identityAssertions = () =>
  withRules(
    z.strictObject({
      issuers: z
        .array(
          withRules(
            z.strictObject({
              issuerUrl: httpsUrl().describe(
                '`iss` of the assertions, byte for byte; where discovery starts without `jwksUrl`.',
              ),
              ...trustedKeys(),
              clients: z
                .array(
                  z.strictObject({
                    clientId: z.string().min(1).max(2048).describe('`client_id` in its assertions.'),
                    at: z
                      .string()
                      .min(1)
                      .max(2048)
                      .optional()
                      .describe('Identifier of that client at this server; the same when absent.'),
                  }),
                )
                .min(1)
                .max(64)
                .optional()
                .describe(
                  'Clients that it may make assertions for; every confidential one by its own identifier when absent.',
                ),
            }),
            [withoutCel(unique('clients', 'clientId'))],
          ),
        )
        .min(1)
        .max(16)
        .describe('Identity providers whose assertions count.'),
    }),
    [unique('issuers', 'issuerUrl')],
  )

/** Keys for the assertion algorithms: RSA of 2048 to 8192 bits, P-256, P-384, P-521 or Ed25519. */
function isClientKey(pem: string): boolean {
  try {
    const { asymmetricKeyType: type, asymmetricKeyDetails: details } = createPublicKey(pem)
    if (type === 'rsa') return (details?.modulusLength ?? 0) >= 2048 && (details?.modulusLength ?? 0) <= 8192
    return type === 'ed25519' || (type === 'ec' && CURVES.has(details?.namedCurve ?? ''))
  } catch {
    return false
  }
}
const CURVES: ReadonlySet<string> = new Set(['prime256v1', 'secp384r1', 'secp521r1'])

/** A public key; a private key is rejected, because the document is not secret. */
const publicKey = () =>
  z
    .string()
    .max(8192)
    .regex(/^-----BEGIN PUBLIC KEY-----\n/, { error: 'expected a public key in PEM ("-----BEGIN PUBLIC KEY-----")' })
    .refine(isClientKey, { error: 'expected an RSA (2048 to 8192 bits), P-256, P-384, P-521 or Ed25519 key' })

/** An entry of `clients`: a configured service client. */
export const configuredClient = () =>
  withRules(
    z.strictObject({
      clientId: clientId('Identifier of the client.'),
      clientSecretRef: secretRef().optional().describe('Its secret (client_secret_basic or client_secret_post).'),
      jwksUrl: httpsUrl().optional().describe('Where its public keys are (private_key_jwt).'),
      publicKeys: z
        .array(publicKey())
        .min(1)
        .max(8)
        .optional()
        .describe('Its public keys as PEM (private_key_jwt); several while they are changed.'),
      grantTypes: z
        .array(z.enum([CLIENT_CREDENTIALS, JWT_BEARER]))
        .min(1)
        .max(2)
        .default([CLIENT_CREDENTIALS])
        .describe('`client_credentials` for itself, the other one for identity assertions.'),
      ...grantBounds(
        'The scopes that it may get; absent: none for itself, with an identity assertion what that grants.',
      ),
    }),
    [
      exclusive('clientSecretRef', 'jwksUrl'),
      exclusive('clientSecretRef', 'publicKeys'),
      exclusive('jwksUrl', 'publicKeys'),
      {
        message: 'a client needs one of "clientSecretRef", "jwksUrl" and "publicKeys"',
        holds: (value) =>
          value.clientSecretRef !== undefined || value.jwksUrl !== undefined || value.publicKeys !== undefined,
        cel: 'has(self.clientSecretRef) || has(self.jwksUrl) || has(self.publicKeys)',
        json: {
          anyOf: [{ required: ['clientSecretRef'] }, { required: ['jwksUrl'] }, { required: ['publicKeys'] }],
        },
      },
      shortLifetime,
    ],
  )

/** A trusted assertion issuer and its keys. */
export type TrustedIssuer = Pick<IdentityAssertionIssuer, 'issuerUrl' | keyof ReturnType<typeof trustedKeys>>
export type IdentityAssertionIssuer = z.output<ReturnType<typeof identityAssertions>>['issuers'][number]
export type ConfiguredClient = z.output<ReturnType<typeof configuredClient>>
