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

/** A URL of a spec that this product calls, and what may be done about plain http there (decisions §2.6). */
export interface CalledUrl {
  /** Below the sub-object. */
  readonly path: readonly PropertyKey[]
  readonly url: string
  /** `insecureAllowHttp` of the spec; undefined where it has no such field. */
  readonly insecureAllowHttp: boolean | undefined
  /** The field that says so. Default `insecureAllowHttp`. */
  readonly allowedBy?: string
  /** The file with the authorities to trust there; undefined: the system's. */
  readonly caCertPath?: string | undefined
}

/** Which token of an upstream provider a config uses. */
export interface UpstreamTokenUse {
  /** The field that names the provider. */
  readonly field: string
  /** Undefined where the config leaves it open. */
  readonly provider: string | undefined
  readonly kind: 'access_token' | 'id_token'
  /** Whether the caller's own token does where no provider is named. */
  readonly ownTokenDoes: boolean
  /**
   * What holds the token: a login at the embedded authorization server (default), a connected account, or the one of
   * the two that has a provider of this name.
   */
  readonly source?: 'connection' | 'login or connection'
  /** The client whose ID token the caller's own token has to be, to do; undefined: any token does. */
  readonly ownTokenFor?: string | undefined
}

/** Something of a spec that is allowed but should be known. */
export interface Remark {
  /** Below the sub-object. */
  readonly path: readonly PropertyKey[]
  readonly message: string
}

/**
 * Where a type runs: for each request of a route, or as a server of its own beside the routes; `nowhere` is a type that
 * this version loads and validates only (decisions §1).
 */
export type RunsOn = 'route' | 'server' | 'nowhere'

/**
 * Owner of a type's credential: each caller (who must be authenticated), the proxy (one for all callers), or none
 * (decisions §2.1).
 */
export type CredentialOf = 'caller' | 'proxy' | 'nobody'

/**
 * What `check` asks to know whether requests of a type would have their credential. `credential`: for the credential itself, as
 * a request does, at the URLs that the type calls; nobody has to be known for it. `exchange`: for that of the caller of
 * `--token-file`, else with a made-up token, which must be refused. `role`: the same with a role that rules choose, which
 * `explain` and role tests show too. `session`: nothing, because it takes somebody who logged in.
 */
export type CheckProbe = 'credential' | 'exchange' | 'role' | 'session'

/** Where the first value of a secret comes from: a file of the lab's secrets, or it is made. */
export type FirstSecret = { readonly ofLab: string } | 'random' | 'signingKey'

/** A first configuration as `extauth init` writes it: `config/init/<type>.yaml` with its secrets. It runs against the lab. */
export interface FirstConfig {
  /** The template's secrets, as `name/key`. */
  readonly secrets: Readonly<Record<string, FirstSecret>>
  /** How a caller of its route comes to a token of the lab. */
  readonly callersHave: 'nothing' | 'token' | 'login'
}

/** The schema of a sub-object under one of the names that it has in files. */
export interface SubObjectSchema<Spec> {
  readonly schema: () => z.ZodType<Spec>
  /** The field's description in schemas. */
  readonly summary: string
}

/** Everything that has to be known of one type of external auth outside of its own code; the rest of the product reads it. */
export interface TypeRecord<Spec> {
  /** Undefined for a type without a sub-object. */
  readonly schema: SubObjectSchema<Spec>['schema'] | undefined
  readonly summary: string
  /** Other names of the type and of its sub-object in files, each with a schema that gives the same spec. */
  readonly aliases?: Readonly<Record<string, SubObjectSchema<Spec>>>
  readonly runsOn: RunsOn
  readonly init: FirstConfig
  credentialOf(spec: Spec): CredentialOf
  checkProbe(spec: Spec): CheckProbe
  /** Every secret that a spec names. */
  secrets(spec: Spec): readonly FoundContent<SecretRef>[]
  /** Every file that a spec names. */
  files(spec: Spec): readonly FoundContent<string>[]
  urls(spec: Spec): readonly CalledUrl[]
  /** The client identities at the authorization servers of a spec; undefined for an unauthenticated one. */
  clients(spec: Spec): readonly (ClientAuth | undefined)[]
  /** The headers that the credential is put into; caller-sent copies are dropped. */
  sets(spec: Spec): readonly SetHeader[]
  /** The token of an upstream provider that may be used in place of the caller's; undefined for types that use none. */
  upstreamToken(spec: Spec): UpstreamTokenUse | undefined
  /** The request body is hashed, so it has to be kept. */
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

/** A row's `secrets` and `files`, read from its schema, so that a new field needs no second mention. */
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

/** A first configuration whose callers log in at the proxy itself. */
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
