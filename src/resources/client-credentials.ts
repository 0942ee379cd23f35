import { z } from 'zod'
import { absoluteUri, httpUrl, injectable, scopes, secretRef, timerDuration, withRules } from '../fields/index.ts'
import { clientFields, keyForAssertions, reservedNames, stringMap, tokenHeaderName } from './client-fields.ts'
import { named, ORDINARY, type TypeRecord } from './type-record.ts'

/** Parameters of a token request that are said by other fields, or by how the client authenticates. */
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

/** `spec.clientCredentials` (RFC 6749 §4.4): only a client that authenticates may use this grant. */
export const clientCredentials = () =>
  withRules(
    z.strictObject({
      tokenUrl: httpUrl().describe('Token endpoint.'),
      clientId: z.string().min(1).max(2048).describe('OAuth 2.0 client identifier of the proxy.'),
      clientSecretRef: secretRef().optional().describe('Client secret.'),
      scopes: scopes().optional().describe('Scopes requested for the token.'),
      audience: z.string().min(1).max(2048).optional().describe('Target audience of the token.'),
      resource: absoluteUri().optional().describe('Target resource (RFC 8707).'),
      additionalParams: stringMap(64).optional().describe('Extra parameters of the token request.'),
      externalTokenHeaderName: tokenHeaderName().describe('Header for the token; Authorization when empty or unset.'),
      cacheSkew: timerDuration()
        .prefault('0s')
        .describe('How much earlier than it must be a token is no longer used; at least a tenth of its life is left.'),
      ...clientFields(),
    }),
    [
      injectable('externalTokenHeaderName'),
      keyForAssertions,
      {
        message: 'missing, needed for this "clientAuthMethod"',
        at: 'clientSecretRef',
        holds: (value) => value.clientAuthMethod === 'private_key_jwt' || value.clientSecretRef !== undefined,
        cel: "(has(self.clientAuthMethod) && self.clientAuthMethod == 'private_key_jwt') || has(self.clientSecretRef)",
        json: {
          anyOf: [
            { properties: { clientAuthMethod: { const: 'private_key_jwt' } }, required: ['clientAuthMethod'] },
            { required: ['clientSecretRef'] },
          ],
        },
      },
      reservedNames('additionalParams', RESERVED_TOKEN_PARAMS, 'the proxy'),
    ],
  )

/** `spec.clientCredentials` with its defaults. */
export type ClientCredentials = z.output<ReturnType<typeof clientCredentials>>

export const clientCredentialsRecord = {
  ...ORDINARY,
  ...named(clientCredentials),
  summary: 'Only with type clientCredentials (RFC 6749 §4.4). Extends the specification.',
  runsOn: 'route',
  credentialOf: () => 'proxy',
  asks: () => 'credential',
  init: { secrets: { 'backend/client-secret': { ofLab: 'lab-proxy/client-secret' } }, callersHave: 'nothing' },
  urls: ({ tokenUrl, insecureAllowHttp, caCertPath }) => [
    { path: ['tokenUrl'], url: tokenUrl, insecureAllowHttp, caCertPath },
  ],
  cacheKey: () => ({}),
  sets: ({ externalTokenHeaderName = 'authorization' }) => [
    { name: externalTokenHeaderName.toLowerCase(), shown: "Bearer (the proxy's own token)" },
  ],
} satisfies TypeRecord<ClientCredentials>
