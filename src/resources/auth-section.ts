import { z } from 'zod'
import { caBundleRef } from './ca-bundle.ts'
import { certificateNeedsTls, clientAuth, oneClient } from './client-auth.ts'
import {
  PUBLIC_PATH,
  exclusive,
  FILE_PATHS,
  type FoundContent,
  isRecord,
  markedContents,
  once,
  type Rule,
  SECRET_REFS,
  type SecretRef,
  needs,
  withRules,
  filePath,
  httpUrl,
  scopes,
  secretRef,
  seconds,
} from '../fields/index.ts'

const publicPaths = () =>
  z
    .array(
      z.string().max(1024).regex(PUBLIC_PATH, {
        error: 'expected a path such as "/docs", not "/", without dot segments, "%", query and fragment',
      }),
    )
    .max(200)

export const audienceClaim = () =>
  z
    .string()
    .min(1)
    .max(256)
    .describe(
      'Claim that must contain the audience; "client_id" for access tokens of Amazon Cognito, which have no aud. Extends the specification.',
    )

const providerFields = () => ({
  name: z.string().min(1).max(253).describe('Provider identifier, used for logging and monitoring.'),
  issuerUrl: httpUrl().describe('Must exactly match the iss claim of tokens.'),
  audience: z.string().min(1).max(2048).describe('Expected aud claim of access tokens.'),
  audienceClaim: audienceClaim().default('aud'),
  subject: z
    .string()
    .min(1)
    .max(2048)
    .optional()
    .describe('Only tokens with exactly this sub claim are accepted. Extends the specification.'),
  jwksUrl: httpUrl().optional().describe('JWKS endpoint; when set, discovery is skipped.'),
  introspectionUrl: httpUrl().optional().describe('Introspection endpoint; enables opaque tokens.'),
  clientId: z.string().min(1).max(2048).optional().describe('Client ID for introspection.'),
  clientSecretFile: filePath('text').optional().describe('File holding the client secret for introspection.'),
  caCertPath: filePath('certificates')
    .optional()
    .describe('CA certificates that replace the system roots for this provider.'),
  authTokenFile: filePath('token')
    .optional()
    .describe('Token file that authenticates JWKS and introspection requests.'),
  allowPrivateIP: z.boolean().default(false).describe('Allow connections to private addresses.'),
  introspection: z
    .strictObject({
      requireAudience: z.boolean().default(true).describe('Whether an answer must carry the audience.'),
    })
    .optional()
    .describe('Extends the specification.'),
  insecureAllowHttp: z
    .boolean()
    .default(false)
    .describe('Allow plain http beyond loopback and in-cluster names. Extends the specification.'),
})

/** Introspection has an issuer, but no token endpoint as assertion audience. */
const noTokenEndpointToName: Rule = {
  message: 'introspection has no token endpoint, expected "issuer" or a text as "assertionAudience"',
  at: 'clientAuth',
  holds: ({ clientAuth: record }) => !isRecord(record) || record['assertionAudience'] !== 'tokenEndpoint',
  cel: "!has(self.clientAuth) || !has(self.clientAuth.assertionAudience) || self.clientAuth.assertionAudience != 'tokenEndpoint'",
  json: { properties: { clientAuth: { properties: { assertionAudience: { not: { const: 'tokenEndpoint' } } } } } },
}

/** The OAuth client identity for introspection. */
export const introspectionClient = () => ({
  clientAuth: clientAuth()
    .optional()
    .describe('How we authenticate for introspection, in place of id and secret. Extends the specification.'),
})

/** `flat` are the equivalent top-level fields; one of `urls` names the endpoint. */
export const introspectionClientRules = (
  flat: readonly string[],
  urls: readonly string[] = ['introspectionUrl'],
): readonly Rule[] => [
  {
    message: `"clientAuth" needs "${urls[0]}" as well`,
    at: 'clientAuth',
    holds: (value) => value['clientAuth'] === undefined || urls.some((name) => value[name] !== undefined),
    cel: ['!has(self.clientAuth)', ...urls.map((name) => `has(self.${name})`)].join(' || '),
    json: { anyOf: [{ not: { required: ['clientAuth'] } }, ...urls.map((name) => ({ required: [name] }))] },
  },
  oneClient(flat),
  noTokenEndpointToName,
  certificateNeedsTls(urls),
]

/** An identity provider of the `auth` section (specification A). */
export const provider = () =>
  withRules(
    z.strictObject({
      ...providerFields(),
      ...introspectionClient(),
    }),
    [needs('clientSecretFile', 'clientId'), ...introspectionClientRules(['clientId', 'clientSecretFile'])],
  )
export type Provider = z.output<ReturnType<typeof provider>>

const sharedProvider = once(provider)

/** The files that a provider references. */
export const filesOfProvider = (settings: Provider): readonly FoundContent<string>[] =>
  markedContents<string>(sharedProvider(), settings, FILE_PATHS)

/** The secrets that a provider references. */
export const secretsOfProvider = (settings: Provider): readonly FoundContent<SecretRef>[] =>
  markedContents<SecretRef>(sharedProvider(), settings, SECRET_REFS)

/** A provider in a manifest: files may be keys of Secrets and ConfigMaps (kubernetes.md §3). */
const manifestProvider = () =>
  withRules(
    z.strictObject({
      ...providerFields(),
      clientSecretRef: secretRef().optional().describe('The same as clientSecretFile, from a Secret.'),
      caBundleRef: caBundleRef().optional().describe('The same as caCertPath, from a ConfigMap or Secret.'),
      ...introspectionClient(),
    }),
    [
      ...introspectionClientRules(['clientId', 'clientSecretFile', 'clientSecretRef']),
      needs('clientSecretFile', 'clientId'),
      needs('clientSecretRef', 'clientId'),
      exclusive('clientSecretFile', 'clientSecretRef'),
      exclusive('caCertPath', 'caBundleRef'),
    ],
  )
export type ManifestProvider = z.output<ReturnType<typeof manifestProvider>>

/** Defaults that differ between users of the section. */
export interface AuthSectionDefaults {
  /** Default of `scopesSupported`; the specification's for the registry. */
  readonly scopesSupported?: readonly string[]
  /** Default of `realm`; the specification's for the registry. Null: the host of the resource. */
  readonly realm?: string | null
}

/**
 * Defaults for the callers of a proxy. Clients request every advertised scope, and most identity providers don't know
 * the registry's scopes (ADR 0004).
 */
export const PROXY_DEFAULTS: AuthSectionDefaults = { scopesSupported: [], realm: null }

const realmText = () =>
  z
    .string()
    .min(1)
    .max(256)
    .regex(/^[\x20\x21\x23-\x5B\x5D-\x7E]+$/, { error: 'expected printable ASCII without quote and backslash' })

const oauth = <P extends z.ZodType>(
  oneProvider: P,
  { scopesSupported = ['mcp-registry:read', 'mcp-registry:write'], realm = 'mcp-registry' }: AuthSectionDefaults,
) =>
  z.strictObject({
    resourceUrl: httpUrl().describe('URL of the resource being protected.'),
    realm:
      realm === null
        ? realmText().optional().describe('OAuth realm identifier. Default: the host of the resource.')
        : realmText().default(realm).describe('OAuth realm identifier.'),
    scopesSupported: scopes()
      .default([...scopesSupported])
      .describe('Scopes advertised in the discovery document.'),
    publicPaths: publicPaths().default([]).describe('Additional paths reachable without authentication.'),
    resourceDocumentation: httpUrl().optional().describe('Link to resource documentation. Extends the specification.'),
    toleranceSeconds: z
      .int()
      .min(0)
      .max(60)
      .transform(seconds)
      .optional()
      .describe(
        'Allowed clock difference in seconds: after exp, and before nbf and iat. Default: 5 and 30. Extends the specification.',
      ),
    providers: z.array(oneProvider).min(1).max(64).describe('Identity providers.'),
  })

/** The section as written; `auth: {}` and a missing section mean mode `oauth` (decisions §2.1). */
const written = <P extends z.ZodType>(oneProvider: P, defaults: AuthSectionDefaults) =>
  withRules(
    z.strictObject({
      mode: z.enum(['oauth', 'anonymous']).default('oauth').describe('How callers are authenticated.'),
      oauth: oauth(oneProvider, defaults).optional().describe('Required in mode oauth.'),
      publicPaths: publicPaths()
        .optional()
        .describe('The same as oauth.publicPaths; both count. Extends the specification.'),
    }),
    [
      {
        message: 'missing, mode "oauth" (the default) needs "oauth.resourceUrl" and "oauth.providers"',
        at: 'oauth',
        // An unknown mode is reported by the enum.
        holds: ({ mode, oauth: section }) => (typeof mode === 'string' && mode !== 'oauth') || section !== undefined,
        cel: "(has(self.mode) && self.mode == 'anonymous') || has(self.oauth)",
        json: {
          anyOf: [{ properties: { mode: { const: 'anonymous' } }, required: ['mode'] }, { required: ['oauth'] }],
        },
      },
    ],
  )

/** Callers are validated against identity providers. `publicPaths` is the union of both places. */
export interface OAuthSection {
  readonly mode: 'oauth'
  readonly oauth: z.output<ReturnType<typeof oauth<ReturnType<typeof provider>>>>
}

export interface AnonymousSection {
  readonly mode: 'anonymous'
}

/**
 * The `auth` section of the registry file and of ProxyConfig with its defaults (specification A): the accepted callers.
 */
export type AuthSection = OAuthSection | AnonymousSection

export const authSection = (defaults: AuthSectionDefaults = {}) =>
  written(provider(), defaults).transform(({ mode, oauth: section, publicPaths: more }): AuthSection => {
    if (mode === 'anonymous' || section === undefined) return { mode: 'anonymous' }
    return { mode, oauth: { ...section, publicPaths: union(section.publicPaths, more) } }
  })

/** The section in a manifest, before file references are resolved. */
export type ManifestSection =
  | AnonymousSection
  | {
      readonly mode: 'oauth'
      readonly oauth: Omit<OAuthSection['oauth'], 'providers'> & { readonly providers: readonly ManifestProvider[] }
    }

export const manifestSection = () =>
  written(manifestProvider(), PROXY_DEFAULTS).transform(
    ({ mode, oauth: section, publicPaths: more }): ManifestSection => {
      if (mode === 'anonymous' || section === undefined) return { mode: 'anonymous' }
      return { mode, oauth: { ...section, publicPaths: union(section.publicPaths, more) } }
    },
  )

const union = (paths: readonly string[], more: readonly string[] = []): string[] => [...new Set([...paths, ...more])]
