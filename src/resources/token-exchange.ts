import { z } from 'zod'
import {
  absoluteUri,
  exclusive,
  httpUrl,
  injectable,
  needs,
  scopes,
  secretRef,
  UNSTRUCTURED,
  withRules,
} from '../fields/index.ts'
import { certificateNeedsTls, clientAuthOf, noIssuerToName } from './client-auth.ts'
import { clientCredentialsGrant, urlsOfGrant } from './client-credentials.ts'
import { clientFields, keyForAssertions, exclusiveClientAuthentication, tokenHeaderName } from './client-fields.ts'
import { subjectProviderName } from './upstream/upstream-provider.ts'
import { named, ORDINARY, type TypeRecord } from './type-record.ts'

/** Short and full names of subject token types, the empty one included (specification, `subjectTokenType`). */
const SUBJECT_TOKEN_TYPE = /^(access_token|id_token|jwt|urn:ietf:params:oauth:token-type:(access_token|id_token|jwt))?$/
const TOKEN_TYPE = /^(access_token|id_token|refresh_token|jwt|saml1|saml2|urn:[!-~]+)$/

const tokenType = () =>
  z
    .string()
    .max(256)
    .regex(TOKEN_TYPE, { error: 'expected "access_token", "id_token", "jwt" or the URN of a token type' })

/** The actor, with the proxy's own service token. */
const actor = () =>
  z.strictObject({
    clientCredentials: clientCredentialsGrant()
      .meta(UNSTRUCTURED)
      .describe(
        'How the proxy gets it (RFC 6749 §4.4): the fields of spec.clientCredentials, without externalTokenHeaderName.',
      ),
  })

const secretOfType = needs('actorTokenType', 'actorTokenSecretRef')
const OWN_TYPE = 'leave "actorTokenType" out: the token of "actor" is an access_token'

/** `spec.tokenExchange` (RFC 8693). */
export const tokenExchange = () =>
  withRules(
    z.strictObject({
      tokenUrl: httpUrl().describe('Token endpoint for the exchange.'),
      audience: z.string().min(1).max(2048).describe('Target audience of the exchanged token.'),
      clientId: z.string().min(1).max(2048).optional().describe('OAuth 2.0 client identifier.'),
      clientSecretRef: secretRef().optional().describe('Client secret.'),
      scopes: scopes().optional().describe('Scopes requested for the exchanged token.'),
      externalTokenHeaderName: tokenHeaderName().describe(
        'Header for the exchanged token; Authorization when empty or unset.',
      ),
      subjectProviderName: subjectProviderName().describe(
        'Upstream provider whose token is the subject token; the token of the caller when empty.',
      ),
      subjectTokenType: z
        .string()
        .max(64)
        .regex(SUBJECT_TOKEN_TYPE, { error: 'expected "access_token", "id_token", "jwt" or one of their URNs' })
        .prefault('access_token')
        .transform((type) => (type === '' ? 'access_token' : type))
        .describe('Type of the subject token, short or as a URN.'),
      resource: absoluteUri()
        .optional()
        .describe('Target resource (RFC 8693 §2.1, RFC 8707). Extends the specification.'),
      actorTokenSecretRef: secretRef().optional().describe('Token of the acting party. Extends the specification.'),
      actor: actor()
        .optional()
        .describe(
          'The acting party where its token is one that the proxy gets for itself, in place of actorTokenSecretRef. Extends the specification.',
        ),
      actorTokenType: tokenType().optional().describe('Type of the actor token. Extends the specification.'),
      requestedTokenType: tokenType()
        .default('access_token')
        .describe('Type of the token asked for. Extends the specification.'),
      ...clientFields(),
    }),
    [
      injectable('externalTokenHeaderName'),
      needs('clientSecretRef', 'clientId'),
      needs('clientKeySecretRef', 'clientId'),
      { ...secretOfType, explain: ({ actor: own }) => (own === undefined ? secretOfType.message : OWN_TYPE) },
      exclusive('actorTokenSecretRef', 'actor'),
      keyForAssertions,
      exclusiveClientAuthentication,
      noIssuerToName(),
      certificateNeedsTls(['tokenUrl']),
    ],
  )

/** `spec.tokenExchange` with its defaults. */
export type TokenExchange = z.output<ReturnType<typeof tokenExchange>>

export const tokenExchangeRecord = {
  ...ORDINARY,
  ...named(tokenExchange),
  summary: 'Only with type tokenExchange (RFC 8693).',
  runsOn: 'route',
  credentialOf: () => 'caller',
  checkProbe: () => 'exchange',
  init: { secrets: { 'exchange/client-secret': { ofLab: 'lab-exchange/client-secret' } }, callersHave: 'token' },
  urls: ({ tokenUrl, insecureAllowHttp, caCertPath, actor: acting }) => [
    { path: ['tokenUrl'], url: tokenUrl, insecureAllowHttp, caCertPath },
    ...(acting === undefined ? [] : urlsOfGrant(acting.clientCredentials, ['actor', 'clientCredentials'])),
  ],
  clients: (spec) => [
    clientAuthOf(spec),
    ...(spec.actor === undefined ? [] : [clientAuthOf(spec.actor.clientCredentials)]),
  ],
  cacheKey: ({ audience, scopes = [] }) => ({ audience, scopes: scopes.join(' ') }),
  sets: ({ externalTokenHeaderName = 'authorization' }) => [
    { name: externalTokenHeaderName.toLowerCase(), shown: 'Bearer (the exchanged token)' },
  ],
  upstreamToken: ({ subjectProviderName: provider, subjectTokenType }) => ({
    field: 'subjectProviderName',
    provider,
    kind: tokenTypeUrn(subjectTokenType) === tokenTypeUrn('id_token') ? 'id_token' : 'access_token',
    ownTokenDoes: true,
    source: 'login or connection',
  }),
} satisfies TypeRecord<TokenExchange>

/** The URN of a token type; accepts short names (`access_token`). */
export function tokenTypeUrn(type: string): string {
  return type.startsWith('urn:') ? type : `urn:ietf:params:oauth:token-type:${type}`
}
