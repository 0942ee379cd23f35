import { z } from 'zod'
import { Failure } from '../../core/index.ts'
import { exclusive, httpsUrl, isRecord, type Rule, secretRef, withRules } from '../../fields/index.ts'
import { type ClientAuth, clientAuth, clientAuthOf, type FlatClient, oneClient } from '../client-auth.ts'

/** The OAuth client identity at an upstream, by top-level fields or `clientAuth`. */
export const upstreamClientFields = () => ({
  clientId: z.string().min(1).max(2048).optional().describe('Client identifier at the upstream provider.'),
  clientSecretRef: secretRef().optional().describe('Optional for public clients using PKCE.'),
  clientAuth: clientAuth()
    .optional()
    .describe('How we authenticate, in place of clientId and clientSecretRef. Extends the specification.'),
})

/** Dynamic client registration at an upstream (RFC 7591). */
export const dcrConfig = () =>
  withRules(
    z.strictObject({
      discoveryUrl: httpsUrl().optional().describe('Metadata of the upstream (RFC 8414), which name the endpoint.'),
      registrationEndpoint: httpsUrl().optional().describe('Where clients register.'),
      initialAccessTokenRef: secretRef().optional().describe('Token that registering takes (RFC 7591 §3).'),
      softwareId: z.string().min(1).max(255).optional().describe('`software_id` of the registration.'),
      softwareStatement: z.string().min(1).max(16_384).optional().describe('`software_statement`, a signed JWT.'),
    }),
    [
      exclusive('discoveryUrl', 'registrationEndpoint'),
      {
        message: 'expected "discoveryUrl" or "registrationEndpoint"',
        holds: (value) => value.discoveryUrl !== undefined || value.registrationEndpoint !== undefined,
        cel: 'has(self.discoveryUrl) || has(self.registrationEndpoint)',
        json: { anyOf: [{ required: ['discoveryUrl'] }, { required: ['registrationEndpoint'] }] },
      },
    ],
  )

/** Redirects need a client identifier, even when a token file contains it. */
const loginsNeedAnId: Rule = {
  message: 'logins need "clientAuth.clientId", with method "tokenFile", too',
  at: 'clientAuth',
  holds: ({ clientAuth: record }) =>
    !isRecord(record) || record['method'] !== 'tokenFile' || record['clientId'] !== undefined,
  cel: "!has(self.clientAuth) || self.clientAuth.method != 'tokenFile' || has(self.clientAuth.clientId)",
  json: {
    properties: {
      clientAuth: {
        anyOf: [{ properties: { method: { not: { const: 'tokenFile' } } } }, { required: ['clientId'] }],
      },
    },
  },
}

/** Exactly one form of client identity is required; `dcrConfig` is one if listed. */
export function oneClientHere(...others: readonly 'dcrConfig'[]): readonly Rule[] {
  const ways = ['clientId', 'clientAuth', ...others]
  const instead = ways.slice(1).map((name) => `"${name}"`)
  return [
    {
      message: `missing, expected the client identifier at the upstream, or ${instead.join(' or ')}`,
      at: 'clientId',
      holds: (value) => ways.some((name) => value[name] !== undefined),
      cel: ways.map((name) => `has(self.${name})`).join(' || '),
      json: { anyOf: ways.map((name) => ({ required: [name] })) },
    },
    oneClient(['clientId', 'clientSecretRef']),
    ...others.flatMap((other) => ['clientId', 'clientSecretRef', 'clientAuth'].map((field) => exclusive(field, other))),
    loginsNeedAnId,
  ]
}

type UpstreamClientAuth = ClientAuth & { readonly clientId: string }

/** The client identity at the upstream of this name. Throws `config_error` for settings that were not validated. */
export function namedClient(name: string, config: FlatClient): UpstreamClientAuth {
  const auth = clientAuthOf(config)
  if (auth?.clientId === undefined)
    throw new Failure('config_error', { detail: `upstream provider ${name} has no clientId` })
  return { ...auth, clientId: auth.clientId }
}

/** The client identity fields of an upstream. */
interface UpstreamClientSpec {
  readonly name: string
  readonly oidcConfig?: FlatClient | undefined
  readonly oauth2Config?: (FlatClient & { readonly dcrConfig?: unknown }) | undefined
}

/** The client identity at an upstream; undefined with client registration. Throws as `namedClient`. */
export const upstreamClient = ({
  name,
  oidcConfig,
  oauth2Config,
}: UpstreamClientSpec): UpstreamClientAuth | undefined =>
  oauth2Config?.dcrConfig === undefined ? namedClient(name, oidcConfig ?? oauth2Config ?? {}) : undefined
