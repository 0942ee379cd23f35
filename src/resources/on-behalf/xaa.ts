import { z } from 'zod'
import {
  absoluteUri,
  filePath,
  httpsUrl,
  httpUrl,
  isRecord,
  needs,
  type Rule,
  scopes,
  secretRef,
  withRules,
} from '../../fields/index.ts'
import {
  certificateNeedsTls,
  clientAuth,
  clientAuthOf,
  type FlatClient,
  noIssuerToName,
  oneClient,
} from '../client-auth.ts'
import { named, ORDINARY, type TypeRecord } from '../type-record.ts'
import { subjectProviderName } from '../upstream/upstream-provider.ts'

/** Field prefixes of the two authorization servers. */
const SERVERS = ['idp', 'target'] as const
type Server = (typeof SERVERS)[number]

const clientId = (where: string) =>
  z.string().min(1).max(2048).optional().describe(`OAuth 2.0 client identifier of the proxy at ${where}.`)
const clientSecret = (where: string) => secretRef().optional().describe(`Client secret at ${where}.`)
const clientRecord = (where: string) =>
  clientAuth()
    .optional()
    .describe(`How we authenticate at ${where}, in place of the fields for it beside. Extends the specification.`)
const authorities = (where: string) =>
  filePath('certificates')
    .optional()
    .describe(`CA certificates that replace the system roots for ${where}. Extends the specification.`)

/** Short and full names, the empty one included (specification, `subjectTokenType`). */
const SUBJECT_TOKEN_TYPE = /^(id_token|urn:ietf:params:oauth:token-type:id_token)?$/

/** The client identifier is required, top-level or in `clientAuth`: assertions and ID tokens name the client. */
const isNamed = (server: Server): readonly Rule[] => {
  const [id, record] = [`${server}ClientId`, `${server}ClientAuth`]
  return [
    {
      message: `missing, needed where there is no "${record}"`,
      at: id,
      holds: (value) => value[id] !== undefined || value[record] !== undefined,
      cel: `has(self.${id}) || has(self.${record})`,
      json: { anyOf: [{ required: [id] }, { required: [record] }] },
    },
    {
      message: `expected a "clientId" in "${record}", whatever its method`,
      at: record,
      holds: ({ [record]: auth }) => !isRecord(auth) || auth['clientId'] !== undefined,
      cel: `!has(self.${record}) || has(self.${record}.clientId)`,
      json: { properties: { [record]: { required: ['clientId'] } } },
    },
  ]
}

/** `spec.xaa` (decisions §3.11, draft-ietf-oauth-identity-assertion-authz-grant). */
export const xaa = () =>
  withRules(
    z.strictObject({
      idpTokenUrl: httpsUrl().describe('Token endpoint of the identity provider, which gives the identity assertion.'),
      idpClientId: clientId('the identity provider'),
      idpClientSecretRef: clientSecret('the identity provider'),
      idpClientAuth: clientRecord('the identity provider'),
      idpCaCertPath: authorities('the identity provider'),
      targetTokenUrl: httpUrl().describe('Token endpoint that gives an access token for the assertion.'),
      insecureTargetTokenUrl: z
        .boolean()
        .default(false)
        .describe('Allow plain http for targetTokenUrl beyond loopback and in-cluster names.'),
      targetClientId: clientId('the target'),
      targetClientSecretRef: clientSecret('the target'),
      targetClientAuth: clientRecord('the target'),
      targetCaCertPath: authorities('the target'),
      targetAudience: z
        .string()
        .min(1)
        .max(2048)
        .describe("Issuer of the target's authorization server: `aud` of the assertion."),
      targetResource: absoluteUri()
        .optional()
        .describe('The MCP server that the token is for (RFC 8707): `resource` of the assertion.'),
      scopes: scopes().optional().describe('Scopes that the identity provider is asked to put into the assertion.'),
      accessTokenScopes: scopes()
        .optional()
        .describe(
          'Scopes that the target is asked for; those of the assertion when absent. Extends the specification.',
        ),
      subjectProviderName: subjectProviderName().describe(
        'Upstream provider whose ID token is shown; the first one of the authorization server of the route when empty, else the ID token that the caller came with.',
      ),
      subjectTokenType: z
        .string()
        .max(64)
        .regex(SUBJECT_TOKEN_TYPE, {
          error: 'expected "id_token" or its URN; refresh tokens are not accepted as subject tokens here',
        })
        .prefault('id_token')
        .transform(() => 'id_token' as const)
        .describe('Type of the token that is shown to the identity provider, short or as a URN.'),
    }),
    SERVERS.flatMap((server) => [
      needs(`${server}ClientSecretRef`, `${server}ClientId`),
      oneClient([`${server}ClientId`, `${server}ClientSecretRef`], { record: `${server}ClientAuth` }),
      ...isNamed(server),
      // The target's issuer is `targetAudience`.
      ...(server === 'idp' ? [noIssuerToName(`${server}ClientAuth`)] : []),
      certificateNeedsTls([`${server}TokenUrl`], `${server}ClientAuth`),
    ]),
  )

/** `spec.xaa` with its defaults. */
export type Xaa = z.output<ReturnType<typeof xaa>>

/** A token endpoint with the OAuth client identity. */
export interface XaaEndpoint extends FlatClient {
  readonly tokenUrl: string
  /** Issuer of the endpoint, if known. */
  readonly issuer: string | undefined
  readonly caCertPath: string | undefined
}

/** The two token endpoints of a config by step. */
export const xaaEndpoints = (spec: Xaa): Readonly<Record<Server, XaaEndpoint>> => ({
  idp: {
    tokenUrl: spec.idpTokenUrl,
    issuer: undefined,
    clientAuth: spec.idpClientAuth,
    clientId: spec.idpClientId,
    clientSecretRef: spec.idpClientSecretRef,
    caCertPath: spec.idpCaCertPath,
  },
  target: {
    tokenUrl: spec.targetTokenUrl,
    issuer: spec.targetAudience,
    clientAuth: spec.targetClientAuth,
    clientId: spec.targetClientId,
    clientSecretRef: spec.targetClientSecretRef,
    caCertPath: spec.targetCaCertPath,
  },
})

export const xaaRecord = {
  ...ORDINARY,
  ...named(xaa),
  summary: 'Only with type xaa (identity assertion authorization grant).',
  runsOn: 'route',
  credentialOf: () => 'caller',
  checkProbe: () => 'exchange',
  init: {
    secrets: {
      'login/hmac': 'random',
      'login/signing-key': 'signingKey',
      'idp/ca.crt': { ofLab: 'lab-idp-ca/ca.crt' },
      'idp/client-secret': { ofLab: 'lab-login/client-secret' },
      'target/client-secret': { ofLab: 'lab-xaa/client-secret' },
    },
    callersHave: 'login',
  },
  urls: ({ idpTokenUrl, idpCaCertPath, targetTokenUrl, targetCaCertPath, insecureTargetTokenUrl }) => [
    { path: ['idpTokenUrl'], url: idpTokenUrl, insecureAllowHttp: undefined, caCertPath: idpCaCertPath },
    {
      path: ['targetTokenUrl'],
      url: targetTokenUrl,
      insecureAllowHttp: insecureTargetTokenUrl,
      allowedBy: 'insecureTargetTokenUrl',
      caCertPath: targetCaCertPath,
    },
  ],
  clients: (spec) => SERVERS.map((server) => clientAuthOf(xaaEndpoints(spec)[server])),
  cacheKey: ({ targetAudience, targetResource = '', scopes: asked = [] }) => ({
    audience: targetAudience,
    resource: targetResource,
    scopes: asked.join(' '),
  }),
  sets: () => [{ name: 'authorization', shown: 'Bearer (the token for the identity assertion)' }],
  upstreamToken: (spec) => ({
    field: 'subjectProviderName',
    provider: spec.subjectProviderName,
    kind: spec.subjectTokenType,
    ownTokenDoes: true,
    ownTokenFor: clientAuthOf(xaaEndpoints(spec).idp)?.clientId,
  }),
  remarks: ({ targetAudience, targetTokenUrl }) =>
    targetAudience === targetTokenUrl
      ? [
          {
            path: ['targetAudience'],
            message: "is the token endpoint; expected the issuer of the target's authorization server",
          },
        ]
      : [],
} satisfies TypeRecord<Xaa>
