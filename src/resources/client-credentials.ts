import { z } from 'zod'
import {
  absoluteUri,
  httpUrl,
  injectable,
  isRecord,
  needs,
  type Rule,
  scopes,
  secretRef,
  timerDuration,
  withRules,
} from '../fields/index.ts'
import { certificateNeedsTls, clientAuthOf, noIssuerToName } from './client-auth.ts'
import {
  clientFields,
  keyForAssertions,
  exclusiveClientAuthentication,
  reservedNames,
  saidHereOrInClientAuth,
  stringMap,
  tokenHeaderName,
} from './client-fields.ts'
import { type CalledUrl, named, ORDINARY, type TypeRecord } from './type-record.ts'

/** Token request parameters that other fields or the client authentication set. */
const RESERVED_TOKEN_PARAMS = [
  'grant_type',
  'client_id',
  'client_secret',
  'client_assertion',
  'client_assertion_type',
  'scope',
  'audience',
  'resource',
] as const

const onePlace: Rule = {
  message: 'expected exactly one of "tokenUrl" and "issuerUrl"',
  at: 'tokenUrl',
  holds: (value) => (value['tokenUrl'] === undefined) !== (value['issuerUrl'] === undefined),
  cel: 'has(self.tokenUrl) != has(self.issuerUrl)',
  json: { oneOf: [{ required: ['tokenUrl'] }, { required: ['issuerUrl'] }] },
}

/** A client identity is required: a public client can't use this grant. */
const isAuthenticated: readonly Rule[] = [
  saidHereOrInClientAuth('clientId'),
  {
    message: 'missing, needed for this "clientAuthMethod"',
    at: 'clientSecretRef',
    holds: (value) =>
      value['clientAuth'] !== undefined ||
      value['clientAuthMethod'] === 'private_key_jwt' ||
      value['clientSecretRef'] !== undefined,
    cel: "has(self.clientAuth) || (has(self.clientAuthMethod) && self.clientAuthMethod == 'private_key_jwt') || has(self.clientSecretRef)",
    json: {
      anyOf: [
        { required: ['clientAuth'] },
        { properties: { clientAuthMethod: { const: 'private_key_jwt' } }, required: ['clientAuthMethod'] },
        { required: ['clientSecretRef'] },
      ],
    },
  },
  {
    message: 'expected another method than "none": only a client that authenticates gets a token of its own',
    at: 'clientAuth',
    holds: ({ clientAuth }) => !isRecord(clientAuth) || clientAuth['method'] !== 'none',
    cel: "!has(self.clientAuth) || self.clientAuth.method != 'none'",
    json: { properties: { clientAuth: { properties: { method: { not: { const: 'none' } } } } } },
  },
]

/** Fields of the grant: endpoint, client, requested token, caching. */
const grantFields = () => ({
  tokenUrl: httpUrl().optional().describe('Token endpoint.'),
  issuerUrl: httpUrl().optional().describe('Authorization server whose metadata name the token endpoint (RFC 8414).'),
  clientId: z.string().min(1).max(2048).optional().describe('OAuth 2.0 client identifier of the proxy.'),
  clientSecretRef: secretRef().optional().describe('Client secret.'),
  scopes: scopes().optional().describe('Scopes requested for the token.'),
  audience: z.string().min(1).max(2048).optional().describe('Target audience of the token.'),
  resource: absoluteUri().optional().describe('Target resource (RFC 8707).'),
  additionalParams: stringMap(64).optional().describe('Extra parameters of the token request.'),
  cacheSkew: timerDuration()
    .prefault('0s')
    .describe('How much earlier than it must be a token is no longer used; at least a tenth of its life is left.'),
  ...clientFields(),
})

const GRANT_RULES: readonly Rule[] = [
  keyForAssertions,
  needs('clientSecretRef', 'clientId'),
  onePlace,
  exclusiveClientAuthentication,
  noIssuerToName('clientAuth', 'issuerUrl'),
  certificateNeedsTls(['tokenUrl', 'issuerUrl']),
  ...isAuthenticated,
  reservedNames('additionalParams', RESERVED_TOKEN_PARAMS, 'the proxy'),
]

/** A service token of the proxy by this grant. */
export const clientCredentialsGrant = () => withRules(z.strictObject(grantFields()), GRANT_RULES)

/** `spec.clientCredentials` (RFC 6749 §4.4): only a client that authenticates may use this grant. */
export const clientCredentials = () =>
  withRules(
    z.strictObject({
      ...grantFields(),
      externalTokenHeaderName: tokenHeaderName().describe('Header for the token; Authorization when empty or unset.'),
    }),
    [injectable('externalTokenHeaderName'), ...GRANT_RULES],
  )

/** `spec.clientCredentials` with its defaults. */
export type ClientCredentials = z.output<ReturnType<typeof clientCredentials>>

/** The grant with its defaults. */
export type ClientCredentialsGrant = z.output<ReturnType<typeof clientCredentialsGrant>>

/** URLs that the grant calls; `path` is the grant's location in the spec. */
export const urlsOfGrant = (
  { tokenUrl, issuerUrl, insecureAllowHttp, caCertPath }: ClientCredentialsGrant,
  path: readonly string[] = [],
): readonly CalledUrl[] =>
  Object.entries({ tokenUrl, issuerUrl }).flatMap(([field, url]) =>
    url === undefined ? [] : [{ path: [...path, field], url, insecureAllowHttp, caCertPath }],
  )

export const clientCredentialsRecord = {
  ...ORDINARY,
  ...named(clientCredentials),
  summary: 'Only with type clientCredentials (RFC 6749 §4.4). Extends the specification.',
  runsOn: 'route',
  credentialOf: () => 'proxy',
  checkProbe: () => 'credential',
  init: { secrets: { 'backend/client-secret': { ofLab: 'lab-proxy/client-secret' } }, callersHave: 'nothing' },
  urls: (spec) => urlsOfGrant(spec),
  clients: (spec) => [clientAuthOf(spec)],
  cacheKey: () => ({}),
  sets: ({ externalTokenHeaderName = 'authorization' }) => [
    { name: externalTokenHeaderName.toLowerCase(), shown: "Bearer (the proxy's own token)" },
  ],
} satisfies TypeRecord<ClientCredentials>
