import type { z } from 'zod'
import type { FailureCode } from '../core/index.ts'
import {
  once,
  FILE_PATHS,
  marked,
  markedContents,
  SECRET_REFS,
  type Found,
  type FoundContent,
  type SecretRef,
} from '../fields/index.ts'

/** A header that a type sets on requests. */
export interface SetHeader {
  /** Lower case. */
  readonly name: string
  /** What stands for its value where people read it; the value itself is never read for that. */
  readonly shown?: string
}

/** A URL of a spec that this product calls, and what may be done about plain http there (decisions §2.6). */
export interface CalledUrl {
  /** Below the sub-object. */
  readonly path: readonly PropertyKey[]
  readonly url: string
  /** `insecureAllowHttp` of the spec; undefined where it has no such field. */
  readonly insecureAllowHttp: boolean | undefined
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

/** The schema of a sub-object under one of the names that it has in files. */
export interface SubObjectSchema<Spec> {
  readonly schema: () => z.ZodType<Spec>
  /** What the field says about itself in schemas. */
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
  /** The credential is got for one caller, so there must be one that is known (decisions §2.1). */
  readonly fetches: boolean
  /** Every secret that a spec names. */
  secrets(spec: Spec): readonly FoundContent<SecretRef>[]
  /** Every file that a spec names. */
  files(spec: Spec): readonly Found<string>[]
  urls(spec: Spec): readonly CalledUrl[]
  /** The headers that the credential is put into; caller-sent copies are dropped. */
  sets(spec: Spec): readonly SetHeader[]
  /** The token of an upstream provider that may be used in place of the caller's; undefined for types that use none. */
  upstreamToken(spec: Spec): UpstreamTokenUse | undefined
  /** The request body is hashed, so it has to be kept. */
  readonly signsBody: boolean
  /** What the caller gets when the backend refuses the last credential (decisions §4). */
  readonly whenRejected: FailureCode
  remarks(spec: Spec): readonly Remark[]
  /** What does not fit the host that requests go to, though it is allowed: sentences without a full stop. */
  remarksOnTarget(spec: Spec, hostname: string): readonly string[]
}

/** A row's `secrets` and `files`, read from its schema, so that a new field needs no second mention. */
export function named<S extends z.ZodType>(
  schema: () => S,
): Pick<TypeRecord<z.output<S>>, 'secrets' | 'files'> & { readonly schema: () => S } {
  const shared = once(schema)
  return {
    schema,
    secrets: (spec) => markedContents<SecretRef>(shared(), spec, SECRET_REFS),
    files: (spec) => marked<string>(shared(), spec, FILE_PATHS),
  }
}

/** What most types have nothing of. */
export const ORDINARY = {
  urls: () => [],
  sets: () => [],
  upstreamToken: () => undefined,
  remarks: () => [],
  remarksOnTarget: () => [],
  signsBody: false,
  whenRejected: 'backend_rejected_credential',
} as const satisfies Partial<TypeRecord<never>>
