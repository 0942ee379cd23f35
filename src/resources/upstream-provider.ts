import { z } from 'zod'
import { reservedNames, stringMap } from './client-fields.ts'
import { AUTH_SERVER_FIELDS, refusals, tabledFields } from './manifest-fields/index.ts'
import {
  celPattern,
  HEADER_NAME,
  headerName,
  httpsUrl,
  httpUrl,
  int32,
  scopes,
  secretRef,
  goesWithType,
  withCel,
  withRules,
} from '../fields/index.ts'

/** Parameters of the authorization request that the server sets itself (specification, `additionalAuthorizationParams`). */
export const RESERVED_AUTHORIZATION_PARAMS = [
  'response_type',
  'client_id',
  'redirect_uri',
  'scope',
  'state',
  'code_challenge',
  'code_challenge_method',
  'nonce',
] as const

/** Headers (RFC 9110 §5): a line break in a value would be another header. */
const headerMap = (max: number) =>
  withCel(
    z
      .record(
        headerName(),
        z
          .string()
          .max(4096)
          .regex(/^[\t -~]*$/, { error: 'expected printable ASCII, without line breaks' }),
      )
      .refine((map) => Object.keys(map).length <= max, { error: `expected at most ${max} entries` })
      .meta({ maxProperties: max }),
    `self.all(name, size(name) <= 256 && name.matches(${celPattern(HEADER_NAME.source)}))`,
    'expected names of headers (RFC 9110 §5.1)',
  )

const fieldNames = (fallback: string) => z.array(z.string().min(1).max(256)).min(1).max(32).default([fallback])

const userInfo = () =>
  z.strictObject({
    endpointUrl: httpUrl().describe('User-info endpoint.'),
    httpMethod: z.enum(['GET', 'POST']).default('GET').describe('Method of the user-info request.'),
    additionalHeaders: headerMap(32).optional().describe('Extra headers on the user-info request.'),
    fieldMapping: z
      .strictObject({
        subjectFields: fieldNames('sub').describe('Fields that may hold the subject.'),
        nameFields: fieldNames('name').describe('Fields that may hold the name to show.'),
        emailFields: fieldNames('email').describe('Fields that may hold the e-mail address.'),
      })
      .optional()
      .describe('Ordered field names; the first non-empty value is used.'),
  })
export type UserInfo = z.output<ReturnType<typeof userInfo>>

const clientFields = () => ({
  clientId: z.string().min(1).max(2048).describe('Client identifier at the upstream provider.'),
  clientSecretRef: secretRef().optional().describe('Optional for public clients using PKCE.'),
  redirectUri: httpUrl().optional().describe('Callback URL; {resourceUrl}/oauth/callback when absent.'),
  additionalAuthorizationParams: stringMap(64)
    .optional()
    .describe('Extra parameters on upstream authorization requests.'),
})

/** OpenID issuers are https wherever they are (OpenID Connect Discovery §3); the endpoints of `oauth2` need not be on this machine. */
const ISSUER_URL =
  'an https URL, on this machine too (caBundleRef trusts an own CA; plain http is for loopback endpoints of type oauth2),'

/** Where the fields of an upstream are in the table of manifests. */
const OIDC = 'upstreamProviders[].oidcConfig'
const OAUTH2 = 'upstreamProviders[].oauth2Config'

const oidcConfig = () =>
  withRules(
    z.strictObject({
      issuerUrl: httpsUrl(ISSUER_URL).describe('Issuer URL for endpoint discovery.'),
      ...clientFields(),
      scopes: scopes().default(['openid', 'offline_access']).describe('Scopes requested.'),
      userInfoOverride: userInfo().optional().describe('Overrides user-info fetching.'),
      toleranceSeconds: int32(0, 60)
        .default(5)
        .describe('Clock difference that is allowed for ID tokens, in seconds. Extends the specification.'),
      ...tabledFields(AUTH_SERVER_FIELDS, OIDC, []),
    }),
    [
      ...refusals(AUTH_SERVER_FIELDS, OIDC),
      reservedNames('additionalAuthorizationParams', RESERVED_AUTHORIZATION_PARAMS, 'the server'),
    ],
  )
export type OidcConfig = z.output<ReturnType<typeof oidcConfig>>

const dotPath = () => z.string().min(1).max(256)

const oauth2Config = () =>
  withRules(
    z.strictObject({
      authorizationEndpoint: httpUrl().describe('Where users log in.'),
      tokenEndpoint: httpUrl().describe('Where codes and refresh tokens become access tokens.'),
      ...clientFields(),
      scopes: scopes().optional().describe('Scopes requested.'),
      tokenResponseMapping: z
        .strictObject({
          accessTokenPath: dotPath().describe('Dot-notation path of the access token.'),
          expiresInPath: dotPath().default('expires_in').describe('Path of the lifetime in seconds.'),
          refreshTokenPath: dotPath().default('refresh_token').describe('Path of the refresh token.'),
          scopePath: dotPath().default('scope').describe('Path of the granted scopes.'),
        })
        .optional()
        .describe('Where a non-standard token response has its fields.'),
      userInfo: userInfo().describe('How to fetch the identity of the user.'),
      ...tabledFields(AUTH_SERVER_FIELDS, OAUTH2, []),
    }),
    [
      ...refusals(AUTH_SERVER_FIELDS, OAUTH2),
      reservedNames('additionalAuthorizationParams', RESERVED_AUTHORIZATION_PARAMS, 'the server'),
    ],
  )
export type OAuth2Config = z.output<ReturnType<typeof oauth2Config>>

const UPSTREAM_TYPES = ['oidc', 'oauth2'] as const

/** What an upstream provider is called, and by what others refer to it (specification, `upstreamProviders[]`). */
export const providerName = () =>
  z
    .string()
    .min(1)
    .max(63)
    .regex(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/, { error: 'expected lower-case letters, digits and hyphens' })

/** Reference to an upstream provider; empty means the same as absent (specification, `subjectProviderName`). */
export const subjectProviderName = () =>
  z
    .string()
    .max(63)
    .transform((name) => (name === '' ? undefined : name))
    .optional()

/** One entry of `embeddedAuthServer.upstreamProviders`. */
export const upstreamProvider = () =>
  withRules(
    z.strictObject({
      name: providerName().describe('Unique; used for routing and session binding.'),
      type: z.enum(UPSTREAM_TYPES).describe('OpenID Connect with discovery, or plain OAuth 2.0.'),
      oidcConfig: oidcConfig().optional().describe('Only with type oidc.'),
      oauth2Config: oauth2Config().optional().describe('Only with type oauth2.'),
      caBundleRef: secretRef('certificates')
        .optional()
        .describe('CA certificates (PEM) that replace the system roots. Extends the specification.'),
      allowPrivateIP: z
        .boolean()
        .default(false)
        .describe('Allow private addresses; loopback by a loopback name is always allowed. Extends the specification.'),
    }),
    [goesWithType('oidcConfig', 'oidc', UPSTREAM_TYPES), goesWithType('oauth2Config', 'oauth2', UPSTREAM_TYPES)],
  )
export type UpstreamProvider = z.output<ReturnType<typeof upstreamProvider>>
