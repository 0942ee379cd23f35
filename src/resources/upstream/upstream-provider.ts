import { z } from 'zod'
import { noIssuerToName } from '../client-auth.ts'
import { reservedNames, stringMap } from '../client-fields.ts'
import { AUTH_SERVER_FIELDS, refusals, tabledFields } from '../manifest-fields/index.ts'
import {
  celPattern,
  HEADER_NAME,
  headerName,
  httpsUrl,
  httpUrl,
  int32,
  isRecord,
  judgePlainHttp,
  type Rule,
  scopes,
  secretRef,
  goesWithType,
  withCel,
  withRules,
} from '../../fields/index.ts'
import { dcrConfig, oneClientHere, upstreamClientFields } from './upstream-client.ts'

/** Parameters of the authorization request that the server sets itself (specification, `additionalAuthorizationParams`). */
const RESERVED_AUTHORIZATION_PARAMS = [
  'response_type',
  'client_id',
  'redirect_uri',
  'scope',
  'state',
  'code_challenge',
  'code_challenge_method',
  'nonce',
] as const

/** The response mode in which the browser posts the authorization response to the callback. */
export const FORM_POST = 'form_post'
const RESPONSE_MODES: readonly unknown[] = ['query', FORM_POST]

/** Other response modes return the response where the server can't read it: in a fragment, or as a JWT. */
const responseMode: Rule = {
  message: `expected response_mode to be ${RESPONSE_MODES.join(' or ')}`,
  at: 'additionalAuthorizationParams',
  holds: ({ additionalAuthorizationParams: params }) =>
    !isRecord(params) || params['response_mode'] === undefined || RESPONSE_MODES.includes(params['response_mode']),
  cel: `!has(self.additionalAuthorizationParams) || self.additionalAuthorizationParams.all(k, k != 'response_mode' || self.additionalAuthorizationParams[k] in ['query', 'form_post'])`,
  json: {
    properties: { additionalAuthorizationParams: { properties: { response_mode: { enum: [...RESPONSE_MODES] } } } },
  },
}

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

const commonFields = () => ({
  ...upstreamClientFields(),
  redirectUri: httpUrl().optional().describe('Callback URL; {resourceUrl}/oauth/callback when absent.'),
  additionalAuthorizationParams: stringMap(64)
    .optional()
    .describe(
      'Extra parameters on upstream authorization requests. `response_mode` may be `form_post` (Apple) or `query`.',
    ),
})

/** OpenID issuers always need https (OpenID Connect Discovery §3); endpoints of `oauth2` may use http on loopback. */
const ISSUER_URL =
  'an https URL, on this machine too (caBundleRef trusts an own CA; plain http is for loopback endpoints of type oauth2),'

/** Name of a top-level ID token claim; empty means absent. */
const CLAIM_NAME = /^([A-Za-z_][A-Za-z0-9_]*)?$/

/** Path of upstream fields in the manifest tables. */
const OIDC = 'upstreamProviders[].oidcConfig'
const OAUTH2 = 'upstreamProviders[].oauth2Config'

export const oidcConfig = () =>
  withRules(
    z.strictObject({
      issuerUrl: httpsUrl(ISSUER_URL).describe('Issuer URL for endpoint discovery.'),
      ...commonFields(),
      scopes: scopes().default(['openid', 'offline_access']).describe('Scopes requested.'),
      userInfoOverride: userInfo().optional().describe('Overrides user-info fetching.'),
      toleranceSeconds: int32(0, 60)
        .optional()
        .describe(
          'Allowed clock difference for ID tokens in seconds: after exp, and before nbf and iat. Default: 5 and 30. Extends the specification.',
        ),
      subjectClaim: z
        .string()
        .max(128)
        .regex(CLAIM_NAME, { error: 'expected the name of a claim: letters, digits and "_"' })
        .optional()
        .describe(
          'Claim of the ID token that identifies the user, where `sub` differs per client (`oid` of Entra ID). Default: `sub`. A change makes every user a new one.',
        ),
      ...tabledFields(AUTH_SERVER_FIELDS, OIDC, []),
    }),
    [
      ...refusals(AUTH_SERVER_FIELDS, OIDC),
      ...oneClientHere(),
      reservedNames('additionalAuthorizationParams', RESERVED_AUTHORIZATION_PARAMS, 'the server'),
      responseMode,
    ],
  )
export type OidcConfig = z.output<ReturnType<typeof oidcConfig>>

const dotPath = () => z.string().min(1).max(256)

/** Printable ASCII without the query syntax of dot path libraries. */
const PLAIN_PATH = String.raw`[!-"$-)+->A-\[\]-{}~]+`
/** A dot path, optionally followed by a path into the payload of the JWT at the first. */
const IDENTITY_PATH = new RegExp(String.raw`^${PLAIN_PATH}(\|@upstreamjwt\|${PLAIN_PATH})?$`)
const identityPath = () =>
  dotPath().regex(IDENTITY_PATH, { error: 'expected a dot path, or two with "|@upstreamjwt|" between them' })

/** User identity from the token response. */
const identityFromToken = () =>
  z.strictObject({
    subjectPath: identityPath().describe(
      'Dot-notation path of the subject in the token response; `access_token|@upstreamjwt|sub` looks into a JWT.',
    ),
    namePath: identityPath().optional().describe('Path of the name to show.'),
    emailPath: identityPath().optional().describe('Path of the e-mail address.'),
  })
export type IdentityFromToken = z.output<ReturnType<typeof identityFromToken>>

/** Rejects a field with a wider meaning than supported. URL validation warns about plain HTTP without it. */
const httpInside: Rule = {
  message: 'plain http is for loopback and in-cluster names only; expected none, and endpoints with https',
  at: 'insecureAllowHTTP',
  holds: ({ insecureAllowHTTP, authorizationEndpoint, tokenEndpoint }) =>
    insecureAllowHTTP !== true ||
    [authorizationEndpoint, tokenEndpoint].every(
      (url) => typeof url !== 'string' || !URL.canParse(url) || judgePlainHttp(url, false) !== 'refuse',
    ),
}

export const oauth2Config = () =>
  withRules(
    z.strictObject({
      authorizationEndpoint: httpUrl().describe('Where users log in.'),
      tokenEndpoint: httpUrl().describe('Where codes and refresh tokens become access tokens.'),
      ...commonFields(),
      dcrConfig: dcrConfig()
        .optional()
        .describe(
          'The client is registered there by us, once, and kept in the storage; instead of `clientId` or `clientAuth`.',
        ),
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
      userInfo: userInfo()
        .optional()
        .describe(
          'How to fetch the identity of the user. Without it and without `identityFromToken` each login is a user of its own.',
        ),
      identityFromToken: identityFromToken()
        .optional()
        .describe(
          'Who the user is, in the answer of the token endpoint; user info is not asked for then. Nothing is signed there: it is believed as the connection is.',
        ),
      allowPrivateIPs: z.boolean().optional().describe('The same as `allowPrivateIP` of the provider.'),
      insecureAllowHTTP: z
        .boolean()
        .optional()
        .describe('Plain http is used for loopback and in-cluster names, with it or without it, and for no others.'),
      ...tabledFields(AUTH_SERVER_FIELDS, OAUTH2, []),
    }),
    [
      ...oneClientHere('dcrConfig'),
      httpInside,
      ...refusals(AUTH_SERVER_FIELDS, OAUTH2),
      noIssuerToName(),
      reservedNames('additionalAuthorizationParams', RESERVED_AUTHORIZATION_PARAMS, 'the server'),
      responseMode,
    ],
  )
export type OAuth2Config = z.output<ReturnType<typeof oauth2Config>>

const UPSTREAM_TYPES = ['oidc', 'oauth2'] as const

/** Name of an upstream provider for references (specification, `upstreamProviders[]`). */
export const providerName = () =>
  z
    .string()
    .min(1)
    .max(63)
    .regex(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/, { error: 'expected lower-case letters, digits and hyphens' })

/** Reference to an upstream provider; empty means absent (specification, `subjectProviderName`). */
export const subjectProviderName = () =>
  z
    .string()
    .max(63)
    .transform((name) => (name === '' ? undefined : name))
    .optional()

/** An entry of `embeddedAuthServer.upstreamProviders`. */
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

/** Whether an upstream never identifies the user: each login gets its own subject. */
export const hasSynthesizedIdentity = ({ oauth2Config: oauth2 }: UpstreamProvider): boolean =>
  oauth2 !== undefined && oauth2.userInfo === undefined && oauth2.identityFromToken === undefined

/** Whether an upstream may be at a private address. */
export const mayBePrivate = ({
  allowPrivateIP,
  oauth2Config: oauth2,
}: Pick<UpstreamProvider, 'allowPrivateIP'> & Partial<Pick<UpstreamProvider, 'oauth2Config'>>): boolean =>
  allowPrivateIP || oauth2?.allowPrivateIPs === true
