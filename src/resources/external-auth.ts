import { z } from 'zod'
import { cloudSts, type CloudSts } from './cloud-sts.ts'
import { embeddedAuthServer, type EmbeddedAuthServer } from './embedded-auth-server.ts'
import { externalAuthStatus, type ExternalAuthStatus } from './external-auth-status.ts'
import { metadata, type Metadata } from './metadata.ts'
import { goesWithType, withRules } from './rules.ts'
import {
  bearerToken,
  headerInjection,
  upstreamInject,
  type BearerToken,
  type HeaderInjection,
  type UpstreamInject,
} from './static-types.ts'
import { tokenExchange, type TokenExchange } from './token-exchange.ts'

/** All types of external auth, in the order of the specification. */
export const AUTH_TYPES = [
  'tokenExchange',
  'headerInjection',
  'bearerToken',
  'unauthenticated',
  'embeddedAuthServer',
  'cloudSts',
  'upstreamInject',
] as const
export type AuthType = (typeof AUTH_TYPES)[number]

/** The types that this version can run on a route; the others load and validate (decisions §1). */
export const RUNNABLE_TYPES = [
  'unauthenticated',
  'headerInjection',
  'bearerToken',
  'tokenExchange',
  'cloudSts',
] as const
export type RunnableType = (typeof RUNNABLE_TYPES)[number]

/** Types whose credential is fetched for the caller, so that there must be one (decisions §2.1). */
export const FETCHING_TYPES: readonly AuthType[] = ['tokenExchange', 'cloudSts', 'upstreamInject']

/** What each type is configured with: the sub-object of `spec` that `type` names. */
export interface AuthSpecs {
  tokenExchange: TokenExchange
  headerInjection: HeaderInjection
  bearerToken: BearerToken
  unauthenticated: Readonly<Record<string, never>>
  embeddedAuthServer: EmbeddedAuthServer
  cloudSts: CloudSts
  upstreamInject: UpstreamInject
}

/** Names that the sub-objects have in files: the types but `unauthenticated`, and the alias `awsSts` (decisions §1). */
const SUB_OBJECTS = [
  'tokenExchange',
  'headerInjection',
  'bearerToken',
  'embeddedAuthServer',
  'cloudSts',
  'awsSts',
  'upstreamInject',
] as const

const WRITTEN_TYPES = [...AUTH_TYPES, 'awsSts'] as const

const spec = () =>
  withRules(
    z.strictObject({
      type: z.enum(WRITTEN_TYPES).describe('How the workload authenticates to the external service.'),
      tokenExchange: tokenExchange().optional().describe('Only with type tokenExchange (RFC 8693).'),
      headerInjection: headerInjection().optional().describe('Only with type headerInjection.'),
      bearerToken: bearerToken().optional().describe('Only with type bearerToken.'),
      embeddedAuthServer: embeddedAuthServer().optional().describe('Only with type embeddedAuthServer.'),
      cloudSts: cloudSts('cloud-mcp').optional().describe('Only with type cloudSts.'),
      awsSts: cloudSts('aws-mcp')
        .optional()
        .describe('Only with type awsSts, the alias of cloudSts. Extends the specification.'),
      upstreamInject: upstreamInject().optional().describe('Only with type upstreamInject.'),
    }),
    SUB_OBJECTS.map((name) => goesWithType(name, name, WRITTEN_TYPES)),
  )

/** `spec` as it is after loading: one type, its sub-object with defaults, aliases gone. */
export type ExternalAuthSpec = { [T in AuthType]: { readonly type: T } & SubObject<T> }[AuthType]
type SubObject<T extends AuthType> = T extends 'unauthenticated' ? unknown : { readonly [K in T]: AuthSpecs[K] }

/** The rules have made sure that exactly the named sub-object is there; what is left is to drop the alias. */
function normalise(parsed: z.output<ReturnType<typeof spec>>): ExternalAuthSpec {
  const { awsSts, ...rest } = parsed
  return (awsSts === undefined ? rest : { type: 'cloudSts', cloudSts: awsSts }) as ExternalAuthSpec
}

/** The resource MCPExternalAuthConfig (specification B). */
export const externalAuthConfig = () =>
  z.strictObject({
    apiVersion: z.string(),
    kind: z.literal('MCPExternalAuthConfig'),
    metadata: metadata(),
    spec: spec().transform(normalise),
    status: externalAuthStatus().optional(),
  })

export interface MCPExternalAuthConfig {
  readonly apiVersion: string
  readonly kind: 'MCPExternalAuthConfig'
  readonly metadata: Metadata
  readonly spec: ExternalAuthSpec
  readonly status?: ExternalAuthStatus | undefined
}
