import { z } from 'zod'
import {
  filePath,
  httpsBaseUrl,
  isRecord,
  needs,
  type Rule,
  scope,
  secretRef,
  timerDuration,
  withRules,
} from '../../fields/index.ts'
import { clientAuth, clientAuthOf, type FlatClient, noIssuerToName, oneClient } from '../client-auth.ts'
import { saidHereOrInClientAuth } from '../client-fields.ts'
import { named, ORDINARY, type TypeRecord } from '../type-record.ts'
import { providerName } from '../upstream/upstream-provider.ts'

/** A GUID or a domain name: `common`, `organizations` and `consumers` are not tenants. */
const TENANT =
  /^([0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}|([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?[.])+[A-Za-z][A-Za-z0-9-]*[A-Za-z0-9])$/

/** Client authentication methods that Entra ID accepts with this grant: in the body, with `client_id`. */
const METHODS = ['clientSecretPost', 'privateKeyJwt', 'tokenFile'] as const

const inTheBody: Rule = {
  message: `expected a "clientId" and one of the methods ${METHODS.join(', ')} (a tokenFile of type "jwt-bearer"): Entra ID takes no other here`,
  at: 'clientAuth',
  holds: ({ clientAuth: client }) => {
    if (!isRecord(client)) return true
    const { method, clientId, tokenFile } = client
    const isSpiffe = isRecord(tokenFile) && tokenFile['type'] === 'jwt-spiffe'
    return METHODS.some((one) => one === method) && clientId !== undefined && !isSpiffe
  },
  cel: `!has(self.clientAuth) || (self.clientAuth.method in [${METHODS.map((one) => `'${one}'`).join(', ')}] && has(self.clientAuth.clientId) && (!has(self.clientAuth.tokenFile) || !has(self.clientAuth.tokenFile.type) || self.clientAuth.tokenFile.type != 'jwt-spiffe'))`,
  json: {
    properties: {
      clientAuth: {
        required: ['clientId'],
        properties: {
          method: { enum: [...METHODS] },
          tokenFile: { properties: { type: { not: { const: 'jwt-spiffe' } } } },
        },
      },
    },
  },
}

const somethingAsked: Rule = {
  message: 'missing, needed where there are no "scopes"',
  at: 'audience',
  holds: ({ audience, scopes }) => audience !== undefined || (Array.isArray(scopes) && scopes.length > 0),
  cel: 'has(self.audience) || (has(self.scopes) && size(self.scopes) > 0)',
  json: { anyOf: [{ required: ['audience'] }, { required: ['scopes'], properties: { scopes: { minItems: 1 } } }] },
}

/** `spec.obo`: a token on behalf of the caller from Entra ID (decisions §3.10). */
export const obo = () =>
  withRules(
    z.strictObject({
      tenantId: z
        .string()
        .max(253)
        .regex(TENANT, {
          error: 'expected the tenant as a GUID or a domain; "common", "organizations" and "consumers" are none',
        })
        .describe('Tenant, as a GUID or a domain.'),
      authority: httpsBaseUrl()
        .default('https://login.microsoftonline.com')
        .describe('Where tenants are: another cloud than the public one.'),
      clientId: z.string().min(1).max(2048).optional().describe('Application (client) ID of the proxy in the tenant.'),
      clientSecretRef: secretRef().optional().describe('Client secret.'),
      clientAuth: clientAuth()
        .optional()
        .describe('How we authenticate, in place of the two fields before. Extends the specification.'),
      audience: z
        .string()
        .min(1)
        .max(248)
        .regex(/^[\x21\x23-\x5B\x5D-\x7E]+$/, { error: 'expected printable ASCII without space, quote and backslash' })
        .optional()
        .describe(
          'Application ID URI or ID of the backend: its scope `.default` is asked for. Not used where there are scopes.',
        ),
      scopes: z.array(scope()).max(20).optional().describe('Scopes of the backend, each with its application ID URI.'),
      subjectTokenProviderName: providerName()
        .optional()
        .describe('Upstream provider whose access token is the assertion; the token of the caller when unset.'),
      cacheSkew: timerDuration()
        .prefault('0s')
        .describe('How much earlier than it must be a token is no longer used; at least a tenth of its life is left.'),
      caCertPath: filePath('certificates')
        .optional()
        .describe('CA certificates that replace the system roots. Extends the specification.'),
    }),
    [
      oneClient(['clientId', 'clientSecretRef']),
      needs('clientSecretRef', 'clientId'),
      saidHereOrInClientAuth('clientId'),
      saidHereOrInClientAuth('clientSecretRef'),
      inTheBody,
      noIssuerToName(),
      somethingAsked,
    ],
  )

/** `spec.obo` with its defaults. */
export type Obo = z.output<ReturnType<typeof obo>>

/** The endpoints of a tenant, for requests and for messages. */
export function oboEndpoints({ authority, tenantId }: Pick<Obo, 'authority' | 'tenantId'>) {
  const tenant = `${authority.replace(/\/+$/, '')}/${tenantId}`
  return {
    token: `${tenant}/oauth2/v2.0/token`,
    authorize: `${tenant}/oauth2/v2.0/authorize`,
    /** Page for an administrator's consent. */
    consent: `${tenant}/adminconsent`,
  }
}

/** The requested scope: the configured scopes, else all granted at the audience. */
export const oboScope = ({ scopes = [], audience }: Pick<Obo, 'scopes' | 'audience'>): string =>
  scopes.length > 0 ? scopes.join(' ') : `${audience}/.default`

/** The OAuth client identity at the tenant in top-level fields: the secret is sent in the body. */
export const oboClient = ({ clientAuth: record, clientId, clientSecretRef }: Obo): FlatClient =>
  record === undefined ? { clientId, clientSecretRef, clientAuthMethod: 'client_secret_post' } : { clientAuth: record }

const clientIdOf = (spec: Obo): string => clientAuthOf(oboClient(spec))?.clientId ?? ''

/** Entra ID accepts only tokens issued for the application that presents them. */
const isForUs = (clientId: string, audience: string): boolean =>
  audience === clientId || audience.startsWith(`api://${clientId}`)

export const oboRecord = {
  ...ORDINARY,
  ...named(obo),
  summary: 'Only with type obo (on-behalf-of flow of Microsoft Entra ID).',
  runsOn: 'route',
  credentialOf: () => 'caller',
  checkProbe: () => 'exchange',
  init: {
    secrets: {
      'entra/client-secret': { ofLab: 'lab-obo/client-secret' },
      'entra-ca/ca.crt': { ofLab: 'lab-idp-ca/ca.crt' },
    },
    callersHave: 'token',
  },
  urls: (spec) => [
    {
      path: ['authority'],
      url: oboEndpoints(spec).token,
      insecureAllowHttp: undefined,
      caCertPath: spec.caCertPath,
    },
  ],
  clients: (spec) => [clientAuthOf(oboClient(spec))],
  cacheKey: (spec) => ({ tenant: spec.tenantId, client: clientIdOf(spec), scopes: oboScope(spec) }),
  sets: () => [{ name: 'authorization', shown: "Bearer (a token on the caller's behalf)" }],
  upstreamToken: ({ subjectTokenProviderName: provider }) => ({
    field: 'subjectTokenProviderName',
    provider,
    kind: 'access_token',
    ownTokenDoes: true,
  }),
  remarksOnAudience: (spec, audience) => {
    const clientId = clientIdOf(spec)
    if (isForUs(clientId, audience)) return []
    return [
      `tokens for "${audience}" are shown to Entra ID, which takes only those for the application that shows them; expected "${clientId}" or "api://${clientId}…"`,
    ]
  },
} satisfies TypeRecord<Obo>
