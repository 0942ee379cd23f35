import type { AuthSection, ManifestSection, RegistryConfig } from '../../resources/index.ts'
import { anchorAuthSection, resolveBeside } from '../routes/file-paths.ts'
import { withFiles } from '../routes/resolve-manifest-callers.ts'
import type { Loaded } from './loaded.ts'
import { readText } from './load-files.ts'
import type { NamedFile, NamedSecret } from './named-files.ts'
import { parseSingle } from './parse-documents.ts'
import { renderProblem, type Located, type Problem } from './problem.ts'

/** A single document of a file, with absolute paths. */
export type SingleResult<T> =
  | {
      readonly config: T
      readonly warnings: readonly string[]
      /** The files that it references. */
      readonly files: readonly NamedFile[]
      /** The secrets and ConfigMap keys that it references. */
      readonly secrets: readonly NamedSecret[]
      /** Its location. */
      readonly place: Located<unknown>
      readonly problems?: undefined
    }
  | {
      readonly problems: readonly Problem[]
      readonly config?: undefined
      readonly warnings?: undefined
      readonly files?: undefined
      readonly secrets?: undefined
      readonly place?: undefined
    }

/** The registry file (decisions §7), with the plain-http rule of decisions §2.6 applied. */
export async function loadRegistryFile(file: string): Promise<SingleResult<RegistryConfig>> {
  const text = await readText(file)
  if (typeof text !== 'string') return { problems: [text] }
  const loaded = parseSingle({ path: file, text }, 'registry')
  return resultOf(loaded, loaded.registries, (config) => ({
    ...config,
    auth: anchorAuthSection(config.auth, file),
    secretsDirectory: resolveBeside(file, config.secretsDirectory),
    registries: config.registries.map(({ name, source }) => ({
      name,
      source: {
        ...source,
        ...(source.file === undefined ? {} : { file: resolveBeside(file, source.file) }),
        ...(source.directory === undefined ? {} : { directory: resolveBeside(file, source.directory) }),
      },
    })),
  }))
}

/**
 * The file of `--callers`: an `auth` section, alone or under the key `auth`. As in a manifest, files may be given as
 * keys of Secrets and ConfigMaps, which are read from `secretsDirectory`.
 */
export async function loadCallersFile(file: string, secretsDirectory: string): Promise<SingleResult<AuthSection>> {
  const text = await readText(file)
  if (typeof text !== 'string') return { problems: [text] }
  return callersIn(text, file, (auth) => anchorAuthSection(withFiles(auth, secretsDirectory), file))
}

/** The same for a text, with unresolved references; `name` is the file name in problems. */
export const readCallersText = (text: string, name: string): SingleResult<ManifestSection> =>
  callersIn(text, name, (auth) => auth)

function callersIn<T>(text: string, file: string, make: (auth: ManifestSection) => T): SingleResult<T> {
  const loaded = parseSingle({ path: file, text }, 'callers')
  return resultOf(loaded, loaded.callers, make)
}

function resultOf<Document, T>(
  { problems, warnings, namedFiles, namedSecrets }: Loaded,
  [place]: readonly Located<Document>[],
  make: (document: Document) => T,
): SingleResult<T> {
  if (problems.length > 0 || place === undefined) return { problems }
  return {
    config: make(place.document),
    warnings: warnings.map(renderProblem),
    files: namedFiles,
    secrets: namedSecrets,
    place,
  }
}
