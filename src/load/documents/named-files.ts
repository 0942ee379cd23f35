import type { z } from 'zod'
import { type SourcePlace } from '../../resources/index.ts'
import { resolveBeside } from '../routes/file-paths.ts'
import { FILE_PATHS, markedContents, SECRET_REFS, type Content, type SecretRef } from '../../fields/index.ts'
import type { Located, Problem } from './problem.ts'

/** A referenced item and where the reference is. */
interface Named {
  /** The document that references it. */
  readonly owner: SourcePlace
  /** Path of the field in that document. */
  readonly steps: readonly PropertyKey[]
  /** A problem at the reference; only its message is missing. */
  readonly at: Problem
  readonly holds: Content
}

/** A file referenced by a document. */
export interface NamedFile extends Named {
  /** Absolute. */
  readonly path: string
  /** The certificate of a key; undefined for other files and without one. */
  readonly certificate: string | undefined
}

/** A secret (or key of a ConfigMap) referenced by a document. */
export interface NamedSecret extends Named {
  /** `<name>/<key>`, its path in the secrets directory. */
  readonly label: string
  /** `algorithm` beside it: the signing algorithm of a client key. */
  readonly algorithm: string | undefined
}

/** The references of one document. */
export interface Names {
  readonly files: readonly NamedFile[]
  readonly secrets: readonly NamedSecret[]
}

/** Every file and secret referenced by `value`, which has passed `schema`. */
export function namesIn(schema: z.core.$ZodType, value: unknown, place: Located<unknown>): Names {
  const owner = { file: place.file, line: place.line }
  const named = ({
    path: steps,
    holds,
  }: {
    readonly path: readonly PropertyKey[]
    readonly holds: Content
  }): Named => ({
    owner,
    steps,
    at: place.problem(steps, ''),
    holds,
  })
  const found = markedContents<string>(schema, value, FILE_PATHS)
  const files: NamedFile[] = []
  for (const file of found) {
    const isBeside = (other: readonly PropertyKey[]): boolean =>
      other.length === file.path.length && other.slice(0, -1).every((step, index) => step === file.path[index])
    const own = found.find((other) => other.holds === 'certificate chain' && isBeside(other.path))?.value
    const certificate =
      file.holds === 'key of certificate' && own !== undefined ? resolveBeside(place.file, own) : undefined
    files.push({ ...named(file), path: resolveBeside(place.file, file.value), certificate })
  }
  const secrets: NamedSecret[] = []
  for (const secret of markedContents<SecretRef>(schema, value, SECRET_REFS))
    secrets.push({
      ...named(secret),
      label: `${secret.value.name}/${secret.value.key}`,
      algorithm: secret.holds === 'client key' ? algorithmBeside(value, secret.path) : undefined,
    })
  return { files, secrets }
}

function algorithmBeside(value: unknown, path: readonly PropertyKey[]): string | undefined {
  let beside = value
  for (const step of path.slice(0, -1))
    beside = typeof beside === 'object' && beside !== null ? Reflect.get(beside, step) : undefined
  const { algorithm } = (beside ?? {}) as { readonly algorithm?: unknown }
  return typeof algorithm === 'string' ? algorithm : undefined
}
