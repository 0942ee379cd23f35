import { z } from 'zod'
import type { HeaderForm } from '../core/index.ts'
import { innerOf } from './later.ts'

/** Required content of a secret or file that a field names. */
export type Content =
  | 'text'
  /** Any bytes: a generated key. */
  | 'bytes'
  /** Goes into a request as it is. */
  | HeaderForm
  /** Bearer token on one line. */
  | 'token'
  /** Authorities, PEM. */
  | 'certificates'
  /** Certificate of one's own with its chain, PEM. */
  | 'certificate chain'
  /** Private key of the certificate that is named beside it, PEM. */
  | 'key of certificate'
  /** Private key of a client, PEM or JWK. */
  | 'client key'
  | 'registry file'
  | 'registry directory'
  /** Where secrets are; not a file. */
  | 'secrets directory'
  /** Created when it is used first. */
  | 'own directory'

/** Whether what a field names goes into a request as it is. */
export const isHeaderForm = (holds: Content): holds is HeaderForm =>
  holds === 'header value' || holds === 'bearer token'

/** Metadata of a field for code that does not know its schema. */
type Mark = z.core.$ZodRegistry<{ readonly holds: Content }>

/** Fields that refer to a secret. Registries of zod, because copies made by `.describe()` keep the marks of their original. */
export const SECRET_REFS: Mark = z.registry()
/** Fields that hold the path of a file. */
export const FILE_PATHS: Mark = z.registry()

/** `schema`, found again by `marked`. */
export function withMark<S extends z.ZodType>(schema: S, mark: Mark, holds: Content): S {
  mark.add(schema, { holds })
  return schema
}

/** A value at a path. */
export interface Found<T> {
  readonly path: readonly PropertyKey[]
  readonly value: T
}

/** The same with what it has to hold. */
export interface FoundContent<T> extends Found<T> {
  readonly holds: Content
}

/** All values of `value` whose schema has the mark. `value` has passed the schema, so that what is marked is a `T`. */
export function marked<T>(schema: z.core.$ZodType, value: unknown, mark: Mark): Found<T>[] {
  return markedContents<T>(schema, value, mark).map(({ path, value: found }) => ({ path, value: found }))
}

/** The same with what each has to hold. */
export function markedContents<T>(schema: z.core.$ZodType, value: unknown, mark: Mark): FoundContent<T>[] {
  return [...walk(schema, value, mark, [])] as FoundContent<T>[]
}

function* walk(
  schema: z.core.$ZodType,
  value: unknown,
  mark: Mark,
  path: readonly PropertyKey[],
): Generator<FoundContent<unknown>> {
  if (value === undefined || value === null) return
  const meaning = mark.get(schema)
  if (meaning !== undefined) {
    yield { path, value, holds: meaning.holds }
    return
  }
  const definition = (schema as z.core.$ZodTypes)._zod.def
  switch (definition.type) {
    case 'object':
      for (const [name, field] of Object.entries(definition.shape)) {
        yield* walk(field, (value as Readonly<Record<string, unknown>>)[name], mark, [...path, name])
      }
      return
    case 'array':
      for (const [index, item] of (value as readonly unknown[]).entries()) {
        yield* walk(definition.element, item, mark, [...path, index])
      }
      return
    case 'record':
      for (const [name, item] of Object.entries(value)) yield* walk(definition.valueType, item, mark, [...path, name])
      return
    case 'optional':
    case 'default':
    case 'prefault':
    case 'nullable':
      yield* walk(definition.innerType, value, mark, path)
      return
    case 'pipe':
      // The output of a transform has the written names, or one of their aliases.
      yield* walk(definition.in, value, mark, path)
      return
    case 'lazy':
      yield* walk(innerOf(schema), value, mark, path)
      return
    default:
    // A schema without parts has no marked parts.
  }
}

/** A copy of `value` with what is at `path` replaced. */
export function withValueAt<T>(value: T, [step, ...rest]: readonly PropertyKey[], replacement: unknown): T {
  if (step === undefined) return replacement as T
  const copy = (Array.isArray(value) ? [...value] : { ...value }) as Record<PropertyKey, unknown>
  copy[step] = withValueAt(copy[step], rest, replacement)
  return copy as T
}
