import { z } from 'zod'
import {
  type AuthSection,
  manifestSection,
  type ManifestSection,
  registryConfig,
  type RegistryConfig,
} from '../../resources/index.ts'
import { anchorAuthSection, besides } from '../routes/file-paths.ts'
import { isConfigMap, textsIn } from './config-map.ts'
import { DEFAULT_API_GROUP, sortDocument } from './document-kinds.ts'
import { explainIssues } from './explain-issue.ts'
import { readText } from './load-files.ts'
import { namesIn, type NamedFile, type NamedSecret } from './named-files.ts'
import { fileProblem, problemMaker, renderProblem, withoutFirstStep, type Located, type Problem } from './problem.ts'
import { withoutNulls, isRecord } from '../../fields/index.ts'
import { withFiles } from '../routes/resolve-manifest-callers.ts'
import { plainHttpIn, refusedHttp, sectionWarnings } from './warnings.ts'
import { fullBudget } from '../yaml/yaml-limits.ts'
import { moved, readYaml, type TextDocument } from '../yaml/yaml.ts'

/** A file that holds one thing, ready to run: paths are absolute. */
export type SingleResult<T> =
  | {
      readonly config: T
      readonly warnings: readonly string[]
      /** The files that it names. */
      readonly files: readonly NamedFile[]
      /** The secrets, and keys of ConfigMaps, that it names. */
      readonly secrets: readonly NamedSecret[]
      /** Where it is written. */
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
  return single(file, 'RegistryConfig', registryConfig(), (config, place) => ({
    value: {
      ...config,
      auth: anchorAuthSection(config.auth, file),
      secretsDirectory: besides(file, config.secretsDirectory),
      registries: config.registries.map(({ name, source }) => ({
        name,
        source: {
          ...source,
          ...(source.file === undefined ? {} : { file: besides(file, source.file) }),
          ...(source.directory === undefined ? {} : { directory: besides(file, source.directory) }),
        },
      })),
    },
    problems: refusedHttp(config.auth, place, ['auth']),
    warnings: sectionWarnings(config.auth, place, ['auth']),
  }))
}

const callersSchema = () => z.strictObject({ auth: manifestSection() })

/**
 * The file of `--callers`: an `auth` section, alone or under the key `auth`. As in a manifest, keys of Secrets and ConfigMaps
 * may stand for files; they lie in `secretsDirectory`.
 */
export function loadCallersFile(file: string, secretsDirectory: string): Promise<SingleResult<AuthSection>> {
  return single(file, 'AuthSection', callersSchema(), ({ auth }, place) => ({
    ...judgedSection(auth, place),
    value: anchorAuthSection(withFiles(auth, secretsDirectory), file),
  }))
}

/** The same of a text that is at hand, with what it refers to as it is written; `name` is what problems call it. */
export const readCallersText = (text: string, name: string): SingleResult<ManifestSection> =>
  judgeText(text, name, 'AuthSection', callersSchema(), ({ auth }, place) => ({
    ...judgedSection(auth, place),
    value: auth,
  }))

const judgedSection = (auth: ManifestSection, place: Located<unknown>) => ({
  problems: refusedHttp(auth, place, ['auth']),
  warnings: sectionWarnings(auth, place, ['auth']),
})

interface Judged<T> {
  readonly value: T
  readonly problems: readonly Problem[]
  readonly warnings: readonly Problem[]
}

async function single<S extends z.ZodType, T>(
  file: string,
  kind: 'RegistryConfig' | 'AuthSection',
  schema: S,
  judge: (value: z.output<S>, place: Located<unknown>) => Judged<T>,
): Promise<SingleResult<T>> {
  const text = await readText(file)
  return typeof text === 'string' ? judgeText(text, file, kind, schema, judge) : { problems: [text] }
}

function judgeText<S extends z.ZodType, T>(
  text: string,
  file: string,
  kind: 'RegistryConfig' | 'AuthSection',
  schema: S,
  judge: (value: z.output<S>, place: Located<unknown>) => Judged<T>,
): SingleResult<T> {
  const { documents, problems } = documentsOf(text, kind)
  if (problems.length > 0) return { problems: problems.map((problem) => fileProblem(file, problem.message, problem)) }
  const [document] = documents
  if (document === undefined || documents.length > 1) {
    return { problems: [fileProblem(file, `expected one document, found ${documents.length}`)] }
  }
  // `--callers` takes the section as it is, too: then the paths of its problems start one level further in.
  const isBare = kind === 'AuthSection' && isRecord(document.value) && !('auth' in document.value)
  const value = isBare ? { auth: document.value } : document.value
  const found = {
    document: value,
    file,
    line: document.start.line,
    problem: problemMaker(file, document, [], kind, ''),
  }
  const place = isBare ? withoutFirstStep(found) : found
  const result = schema.safeParse(withoutNulls(schema, value))
  if (!result.success) {
    const findings = explainIssues(result.error.issues, schema, value)
    const found = findings.map((finding) => place.problem(finding.path, finding.message, { at: finding.at }))
    return { problems: [...found, ...plainHttpIn(place, value)] }
  }
  const judged = judge(result.data, place)
  if (judged.problems.length > 0) return { problems: judged.problems }
  const scalars = document.warnings.map((warning) => moved(found.problem(warning.path, warning.message), warning))
  const { files, secrets } = namesIn(schema, withoutNulls(schema, value), place)
  const warnings = [...scalars, ...judged.warnings].map(renderProblem)
  return { config: judged.value, warnings, files, secrets, place }
}

/** The documents of a text; of a ConfigMap, or a list with some, those of the wanted kind that are in it. */
function documentsOf(text: string, kind: 'RegistryConfig' | 'AuthSection'): ReturnType<typeof readYaml> {
  const context = { apiGroup: DEFAULT_API_GROUP, budget: fullBudget() }
  const { documents, problems } = readYaml(text, context.budget)
  const wanted = kind === 'AuthSection' ? 'callers' : 'registry'
  const found = documents
    .filter(({ value }) => value !== null)
    .flatMap((document) => {
      const maps = configMapsIn(document)
      if (maps.length === 0) return [document]
      return maps.flatMap(({ value, prefix }) => {
        const texts = textsIn(value, document, prefix, context)
        problems.push(...texts.flatMap((inner) => inner.problems))
        return texts
          .flatMap((inner) => inner.documents)
          .filter((inner) => isRecord(inner.value) && sortDocument(inner.value, context.apiGroup).is === wanted)
      })
    })
  return { documents: found, problems }
}

function configMapsIn({ value }: TextDocument): { value: Readonly<Record<string, unknown>>; prefix: PropertyKey[] }[] {
  if (!isRecord(value)) return []
  if (isConfigMap(value)) return [{ value, prefix: [] }]
  const items: unknown[] = value.kind === 'List' && Array.isArray(value.items) ? value.items : []
  return items.flatMap((item, index) =>
    isRecord(item) && isConfigMap(item) ? [{ value: item, prefix: ['items', index] }] : [],
  )
}
