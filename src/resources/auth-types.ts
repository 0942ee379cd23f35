import type { z } from 'zod'
import type { ClientAuth } from './client-auth.ts'
import { clientCredentialsRecord } from './client-credentials.ts'
import { cloudStsRecord } from './aws/cloud-sts.ts'
import { embeddedAuthServerRecord } from './embedded-auth-server.ts'
import { oboRecord } from './on-behalf/obo.ts'
import {
  bearerTokenRecord,
  headerInjectionRecord,
  unauthenticatedRecord,
  upstreamInjectRecord,
} from './static-types.ts'
import { tokenExchangeRecord } from './token-exchange.ts'
import { xaaRecord } from './on-behalf/xaa.ts'
import type { FoundContent, SecretRef } from '../fields/index.ts'
import type {
  CheckProbe,
  CalledUrl,
  CredentialOf,
  Remark,
  SetHeader,
  TypeRecord,
  UpstreamTokenUse,
} from './type-record.ts'

/** All types of external auth, in the order of the specification. */
export const AUTH_TYPES = [
  'tokenExchange',
  'headerInjection',
  'bearerToken',
  'unauthenticated',
  'embeddedAuthServer',
  'cloudSts',
  'upstreamInject',
  'clientCredentials',
  'obo',
  'xaa',
] as const
export type AuthType = (typeof AUTH_TYPES)[number]

/**
 * The type records: a new type does not compile without a record, nor without a credential source if it runs on routes.
 */
const RECORDS = {
  tokenExchange: tokenExchangeRecord,
  headerInjection: headerInjectionRecord,
  bearerToken: bearerTokenRecord,
  unauthenticated: unauthenticatedRecord,
  embeddedAuthServer: embeddedAuthServerRecord,
  cloudSts: cloudStsRecord,
  upstreamInject: upstreamInjectRecord,
  clientCredentials: clientCredentialsRecord,
  obo: oboRecord,
  xaa: xaaRecord,
} satisfies { readonly [T in AuthType]: TypeRecord<unknown> }
type Records = typeof RECORDS

/** Configuration per type: the sub-object of `spec` that `type` names, `{}` for a type without one. */
export type AuthSpecs = {
  [T in AuthType]: Records[T]['schema'] extends (() => infer S extends z.ZodType)
    ? z.output<S>
    : Readonly<Record<string, never>>
}

/** Types that run for each request of a route; `obtain` has a source for each. */
export type RunnableType = { [T in AuthType]: Records[T]['runsOn'] extends 'route' ? T : never }[AuthType]

/** Types whose credential belongs to a role, selected by rules over the caller's claims. */
export type RoleType = RunnableType &
  { [T in AuthType]: 'role' extends ReturnType<Records[T]['checkProbe']> ? T : never }[AuthType]

/** The record of each type with its spec type. */
export const TYPE_RECORDS: { readonly [T in AuthType]: TypeRecord<AuthSpecs[T]> } = RECORDS

/** `spec` after loading: one type, its sub-object with defaults, no aliases. */
export type ExternalAuthSpec = { [T in AuthType]: SpecOf<T> }[AuthType]
type SpecOf<T extends AuthType> = { readonly type: T } & (Records[T]['schema'] extends undefined
  ? unknown
  : { readonly [K in T]: AuthSpecs[K] })

/** A type with its configuration. */
export interface TypedSpec<T extends AuthType = AuthType> {
  readonly type: T
  readonly spec: AuthSpecs[T]
}

/** Returns the sub-object that `type` names; `{}` for a type without one. */
export function typedSpec(spec: ExternalAuthSpec): TypedSpec {
  const { type, ...subObjects }: { readonly type: AuthType } & Partial<AuthSpecs> = spec
  return { type, spec: subObjects[type] ?? {} }
}

/** Headers that the credential of a config sets. */
export const headersSetBy = <T extends AuthType>({ type, spec }: TypedSpec<T>): readonly SetHeader[] =>
  TYPE_RECORDS[type].sets(spec)

/** Secrets that a config references. */
export const secretsNamedBy = <T extends AuthType>({ type, spec }: TypedSpec<T>): readonly FoundContent<SecretRef>[] =>
  TYPE_RECORDS[type].secrets(spec)

/** Files that a config references. */
export const filesNamedBy = <T extends AuthType>({ type, spec }: TypedSpec<T>): readonly FoundContent<string>[] =>
  TYPE_RECORDS[type].files(spec)

/** URLs of a config that mcp-extauth calls. */
export const urlsCalledBy = <T extends AuthType>({ type, spec }: TypedSpec<T>): readonly CalledUrl[] =>
  TYPE_RECORDS[type].urls(spec)

/** OAuth client identities at the authorization servers of a config; undefined for unauthenticated requests. */
export const clientsOf = <T extends AuthType>({ type, spec }: TypedSpec<T>): readonly (ClientAuth | undefined)[] =>
  TYPE_RECORDS[type].clients(spec)

/** The upstream token that a config may use instead of the caller's. */
export const upstreamTokenOf = <T extends AuthType>({ type, spec }: TypedSpec<T>): UpstreamTokenUse | undefined =>
  TYPE_RECORDS[type].upstreamToken(spec)

/** Distinguishes a credential from others of the same config and caller; undefined if none is fetched and cached. */
export const cacheKeyOf = <T extends AuthType>({
  type,
  spec,
}: TypedSpec<T>): Readonly<Record<string, string>> | undefined => TYPE_RECORDS[type].cacheKey(spec)

/** Whether rules select a role for the credential of a config. */
export const hasRoles = <A extends TypedSpec>(auth: A): auth is Extract<A, { readonly type: RoleType }> =>
  checkProbeOf(auth) === 'role'

/** The probe of `check` for a config. */
export const checkProbeOf = <T extends AuthType>({ type, spec }: TypedSpec<T>): CheckProbe =>
  TYPE_RECORDS[type].checkProbe(spec)

/** The owner of a config's credential. */
export const credentialOf = <T extends AuthType>({ type, spec }: TypedSpec<T>): CredentialOf =>
  TYPE_RECORDS[type].credentialOf(spec)

/** The type for a name in files, aliases included; undefined if unknown. */
export const typeWrittenAs = (name: string): AuthType | undefined =>
  WRITTEN_TYPES.find((written) => written.name === name)?.type

/** Warnings about a valid config. */
export const remarksOn = <T extends AuthType>({ type, spec }: TypedSpec<T>): readonly Remark[] =>
  TYPE_RECORDS[type].remarks(spec)

/** Warnings about a config and the target host of its requests. */
export const remarksOnTarget = <T extends AuthType>(
  { type, spec }: TypedSpec<T>,
  hostname: string,
): readonly string[] => TYPE_RECORDS[type].remarksOnTarget(spec, hostname)

/** Warnings about a config and the audience of its callers' tokens. */
export const remarksOnAudience = <T extends AuthType>(
  { type, spec }: TypedSpec<T>,
  audience: string,
): readonly string[] => TYPE_RECORDS[type].remarksOnAudience(spec, audience)

/** A name of a type and its sub-object in files, aliases included. */
export interface WrittenType {
  readonly name: string
  readonly type: AuthType
  readonly schema: (() => z.ZodType) | undefined
  readonly summary: string
}

/** All names of types in files, in the order of the specification; aliases follow their type. */
export const WRITTEN_TYPES: readonly WrittenType[] = AUTH_TYPES.flatMap((type) => {
  const { schema, summary, aliases = {} }: TypeRecord<unknown> = TYPE_RECORDS[type]
  const names: WrittenType[] = [{ name: type, type, schema, summary }]
  for (const [name, alias] of Object.entries(aliases)) names.push({ name, type, ...alias })
  return names
})
