import type { z } from 'zod'
import type { FailureCode } from '../core/index.ts'
import { once, FILE_PATHS, markedContents, SECRET_REFS, type FoundContent, type SecretRef } from '../fields/index.ts'
import type { ClientAuth } from './client-auth.ts'

/** A header that a type sets on requests. */
export interface SetHeader {
  /** Lower case. */
  readonly name: string
  /** Placeholder of the value in displays; the value itself is never read for them. */
  readonly shown?: string
}

/** A URL of a spec that mcp-extauth calls, and its setting for plain HTTP (decisions §2.6). */
export interface CalledUrl {
  /** Path below the sub-object. */
  readonly path: readonly PropertyKey[]
  readonly url: string
  /** `insecureAllowHttp` of the spec; undefined without such a field. */
  readonly insecureAllowHttp: boolean | undefined
  /** Name of that field. Default `insecureAllowHttp`. */
  readonly allowedBy?: string
  /** File with trusted CA certificates; undefined: the system's. */
  readonly caCertPath?: string | undefined
}

/** The upstream token that a config uses. */
export interface UpstreamTokenUse {
  /** The field that names the provider. */
  readonly field: string
  /** Undefined if the config sets none. */
  readonly provider: string | undefined
  readonly kind: 'access_token' | 'id_token'
  /** Whether the caller's own token is used without a provider name. */
  readonly ownTokenDoes: boolean
  /**
   * Owner of the token: a login at the embedded authorization server (default), a connected account, or the one of the
   * two that has a provider of this name.
   */
  readonly source?: 'connection' | 'login or connection'
  /** The caller's own token must be an ID token of this client; undefined: any token is accepted. */
  readonly ownTokenFor?: string | undefined
}

/** A warning about a valid spec. */
export interface Remark {
  /** Path below the sub-object. */
  readonly path: readonly PropertyKey[]
  readonly message: string
}

/**
 * Scope of a type: each request of a route, or an own server beside the routes. Types with `nowhere` are only loaded
 * and validated (decisions §1).
 */
export type RunsOn = 'route' | 'server' | 'nowhere'

/**
 * Owner of a type's credential: each caller (who must be authenticated), the proxy (one for all callers), or none
 * (decisions §2.1).
 */
export type CredentialOf = 'caller' | 'proxy' | 'none'

/**
 * How `check` tests the credential of a type. `credential`: fetches it at the configured URLs, without a caller.
 * `exchange`: exchanges the token of `--token-file`, or else an invalid token that must be rejected. `role`: like
 * `exchange` with a role selected by rules, shown by `explain` and role tests too. `session`: no test, because a
 * logged-in user is required.
 */
export type CheckProbe = 'credential' | 'exchange' | 'role' | 'session'

/** Source of a secret's first value: a file of the lab's secrets, or generated. */
export type FirstSecret = { readonly ofLab: string } | 'random' | 'signingKey'

/**
 * The configuration that `extauth init` writes: `config/init/<type>.yaml` with its secrets. It runs against the lab.
 */
export interface FirstConfig {
  /** The template's secrets, as `name/key`. */
  readonly secrets: Readonly<Record<string, FirstSecret>>
  /** How a caller of its route gets a token of the lab. */
  readonly callersHave: 'nothing' | 'token' | 'login'
}

/** The schema of a sub-object under one of its names in files. */
export interface SubObjectSchema<Spec> {
  readonly schema: () => z.ZodType<Spec>
  /** The field's description in schemas. */
  readonly summary: string
}

/** All properties of an external auth type that other modules need. */
export interface TypeRecord<Spec> {
  /** Undefined for a type without a sub-object. */
  readonly schema: SubObjectSchema<Spec>['schema'] | undefined
  readonly summary: string
  /** Aliases of the type and its sub-object in files, each with a schema of the same output. */
  readonly aliases?: Readonly<Record<string, SubObjectSchema<Spec>>>
  readonly runsOn: RunsOn
  readonly init: FirstConfig
  credentialOf(spec: Spec): CredentialOf
  checkProbe(spec: Spec): CheckProbe
  /** Secrets that a spec references. */
  secrets(spec: Spec): readonly FoundContent<SecretRef>[]
  /** Files that a spec references. */
  files(spec: Spec): readonly FoundContent<string>[]
  urls(spec: Spec): readonly CalledUrl[]
  /** The client identities at the authorization servers of a spec; undefined for an unauthenticated one. */
  clients(spec: Spec): readonly (ClientAuth | undefined)[]
  /** The headers that the credential is put into; caller-sent copies are dropped. */
  sets(spec: Spec): readonly SetHeader[]
  /** The token of an upstream provider that may be used in place of the caller's; undefined for types that use none. */
  upstreamToken(spec: Spec): UpstreamTokenUse | undefined
  /** The request body is hashed, so it must be buffered. */
  readonly signsBody: boolean
  /** The failure after the backend rejected the last credential (decisions §4). */
  readonly whenRejected: FailureCode
  /**
   * Identifies a credential among those of the same config and caller, as `explain` shows it; undefined when none is
   * cached.
   */
  cacheKey(spec: Spec): Readonly<Record<string, string>> | undefined
  remarks(spec: Spec): readonly Remark[]
  /** Warnings about the target host: sentences without a full stop. */
  remarksOnTarget(spec: Spec, hostname: string): readonly string[]
  /** Warnings about the audience of forwarded tokens: sentences as above. */
  remarksOnAudience(spec: Spec, audience: string): readonly string[]
}

/** Derives `secrets` and `files` of a record from its schema, so that new fields are included. */
export function named<S extends z.ZodType>(
  schema: () => S,
): Pick<TypeRecord<z.output<S>>, 'secrets' | 'files'> & { readonly schema: () => S } {
  const shared = once(schema)
  return {
    schema,
    secrets: (spec) => markedContents<SecretRef>(shared(), spec, SECRET_REFS),
    files: (spec) => markedContents<string>(shared(), spec, FILE_PATHS),
  }
}

/** A first configuration with logins at the proxy itself. */
export const FIRST_LOGIN: FirstConfig = {
  secrets: {
    'login/hmac': 'random',
    'login/signing-key': 'signingKey',
    'workspace/client-secret': { ofLab: 'lab-workspace/client-secret' },
  },
  callersHave: 'login',
}

/** Defaults that apply to most types. */
export const ORDINARY = {
  urls: () => [],
  clients: () => [],
  sets: () => [],
  upstreamToken: () => undefined,
  cacheKey: () => undefined,
  remarks: () => [],
  remarksOnTarget: () => [],
  remarksOnAudience: () => [],
  signsBody: false,
  whenRejected: 'backend_rejected_credential',
} as const satisfies Partial<TypeRecord<never>>
