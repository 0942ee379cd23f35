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

/** One record per type: a new type does not compile without its own, and without a source where it runs on routes. */
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

/** What each type is configured with: the sub-object of `spec` that `type` names; nothing for a type without one. */
export type AuthSpecs = {
  [T in AuthType]: Records[T]['schema'] extends (() => infer S extends z.ZodType)
    ? z.output<S>
    : Readonly<Record<string, never>>
}

/** The types that run for each request of a route: `obtain` has a source for each. */
export type RunnableType = { [T in AuthType]: Records[T]['runsOn'] extends 'route' ? T : never }[AuthType]

/** The types whose credential is that of a role, which rules choose by the caller's claims. */
export type RoleType = RunnableType &
  { [T in AuthType]: 'role' extends ReturnType<Records[T]['checkProbe']> ? T : never }[AuthType]

/** The record of each type, with the spec that belongs to it. */
export const TYPE_RECORDS: { readonly [T in AuthType]: TypeRecord<AuthSpecs[T]> } = RECORDS

/** `spec` as it is after loading: one type, its sub-object with defaults, aliases gone. */
export type ExternalAuthSpec = { [T in AuthType]: SpecOf<T> }[AuthType]
type SpecOf<T extends AuthType> = { readonly type: T } & (Records[T]['schema'] extends undefined
  ? unknown
  : { readonly [K in T]: AuthSpecs[K] })

/** A type with its configuration, as the records take it. */
export interface TypedSpec<T extends AuthType = AuthType> {
  readonly type: T
  readonly spec: AuthSpecs[T]
}

/** The sub-object that `type` names; `{}` for a type that has none. */
export function typedSpec(spec: ExternalAuthSpec): TypedSpec {
  const { type, ...subObjects }: { readonly type: AuthType } & Partial<AuthSpecs> = spec
  return { type, spec: subObjects[type] ?? {} }
}

/** The headers that the credential of a config is put into. */
export const headersSetBy = <T extends AuthType>({ type, spec }: TypedSpec<T>): readonly SetHeader[] =>
  TYPE_RECORDS[type].sets(spec)

/** Every secret that a config names. */
export const secretsNamedBy = <T extends AuthType>({ type, spec }: TypedSpec<T>): readonly FoundContent<SecretRef>[] =>
  TYPE_RECORDS[type].secrets(spec)

/** Every file that a config names. */
export const filesNamedBy = <T extends AuthType>({ type, spec }: TypedSpec<T>): readonly FoundContent<string>[] =>
  TYPE_RECORDS[type].files(spec)

/** Every URL of a config that this product calls. */
export const urlsCalledBy = <T extends AuthType>({ type, spec }: TypedSpec<T>): readonly CalledUrl[] =>
  TYPE_RECORDS[type].urls(spec)

/** Who we are at the authorization servers that a config names; undefined where we don't say. */
export const clientsOf = <T extends AuthType>({ type, spec }: TypedSpec<T>): readonly (ClientAuth | undefined)[] =>
  TYPE_RECORDS[type].clients(spec)

/** The token of an upstream provider that a config may use in place of the caller's. */
export const upstreamTokenOf = <T extends AuthType>({ type, spec }: TypedSpec<T>): UpstreamTokenUse | undefined =>
  TYPE_RECORDS[type].upstreamToken(spec)

/** What tells a credential from others of the same config and caller; undefined where none is fetched and kept. */
export const cacheKeyOf = <T extends AuthType>({
  type,
  spec,
}: TypedSpec<T>): Readonly<Record<string, string>> | undefined => TYPE_RECORDS[type].cacheKey(spec)

/** Whether the credential of a config is that of a role, which rules choose. */
export const hasRoles = <A extends TypedSpec>(auth: A): auth is Extract<A, { readonly type: RoleType }> =>
  checkProbeOf(auth) === 'role'

/** What `check` asks for a config. */
export const checkProbeOf = <T extends AuthType>({ type, spec }: TypedSpec<T>): CheckProbe =>
  TYPE_RECORDS[type].checkProbe(spec)

/** Whose credential a config gives. */
export const credentialOf = <T extends AuthType>({ type, spec }: TypedSpec<T>): CredentialOf =>
  TYPE_RECORDS[type].credentialOf(spec)

/** The type that a name in files stands for; undefined for none. */
export const typeWrittenAs = (name: string): AuthType | undefined =>
  WRITTEN_TYPES.find((written) => written.name === name)?.type

/** What is allowed in a config but should be known. */
export const remarksOn = <T extends AuthType>({ type, spec }: TypedSpec<T>): readonly Remark[] =>
  TYPE_RECORDS[type].remarks(spec)

/** What of a config does not fit the host that its requests go to, though it is allowed. */
export const remarksOnTarget = <T extends AuthType>(
  { type, spec }: TypedSpec<T>,
  hostname: string,
): readonly string[] => TYPE_RECORDS[type].remarksOnTarget(spec, hostname)

/** What of a config does not fit tokens of an audience that callers of its route show, though it is allowed. */
export const remarksOnAudience = <T extends AuthType>(
  { type, spec }: TypedSpec<T>,
  audience: string,
): readonly string[] => TYPE_RECORDS[type].remarksOnAudience(spec, audience)

/** A type as `type` and sub-object are named in files, its aliases included. */
export interface WrittenType {
  readonly name: string
  readonly type: AuthType
  readonly schema: (() => z.ZodType) | undefined
  readonly summary: string
}

/** All names that types have in files, in the order of the specification, aliases behind their original. */
export const WRITTEN_TYPES: readonly WrittenType[] = AUTH_TYPES.flatMap((type) => {
  const { schema, summary, aliases = {} }: TypeRecord<unknown> = TYPE_RECORDS[type]
  const names: WrittenType[] = [{ name: type, type, schema, summary }]
  for (const [name, alias] of Object.entries(aliases)) names.push({ name, type, ...alias })
  return names
})
