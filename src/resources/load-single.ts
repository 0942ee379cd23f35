import { z } from 'zod'
import { authSection, type AuthSection, PROXY_DEFAULTS } from './auth-section.ts'
import { explainIssues } from './explain-issue.ts'
import { anchorAuthSection, besides } from './file-paths.ts'
import { readText } from './load-files.ts'
import { fileProblem, problemMaker, renderProblem, type Located, type Problem } from './problem.ts'
import { registryConfig, type RegistryConfig } from './registry-config.ts'
import { isRecord, withoutNulls } from './rules.ts'
import { refusedHttp, sectionWarnings } from './warnings.ts'
import { readYaml } from './yaml.ts'

/** A file that holds one thing, ready to run: paths are absolute. */
export type SingleResult<T> =
  | { readonly config: T; readonly warnings: readonly string[]; readonly problems?: undefined }
  | { readonly problems: readonly Problem[]; readonly config?: undefined; readonly warnings?: undefined }

/** The registry file (decisions §7), with the plain-http rule of decisions §2.6 applied. */
export async function loadRegistryFile(file: string): Promise<SingleResult<RegistryConfig>> {
  return single(file, 'RegistryConfig', registryConfig(), (config, place) => ({
    value: {
      auth: anchorAuthSection(config.auth, file),
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

/** The file of `--callers`: an `auth` section, alone or under the key `auth`. */
export async function loadCallersFile(file: string): Promise<SingleResult<AuthSection>> {
  const section = authSection(PROXY_DEFAULTS)
  return single(file, 'AuthSection', z.strictObject({ auth: section }), ({ auth }, place) => ({
    value: anchorAuthSection(auth, file),
    problems: refusedHttp(auth, place, ['auth']),
    warnings: sectionWarnings(auth, place, ['auth']),
  }))
}

interface Judged<T> {
  readonly value: T
  readonly problems: readonly Problem[]
  readonly warnings: readonly Problem[]
}

async function single<S extends z.ZodType, T>(
  file: string,
  kind: string,
  schema: S,
  judge: (value: z.output<S>, place: Located<unknown>) => Judged<T>,
): Promise<SingleResult<T>> {
  const text = await readText(file)
  if (typeof text !== 'string') return { problems: [text] }
  const { documents, problems } = readYaml(text)
  if (problems.length > 0) return { problems: problems.map((problem) => fileProblem(file, problem.message, problem)) }
  const filled = documents.filter((document) => document.value !== null)
  const [document] = filled
  if (document === undefined || filled.length > 1) {
    return { problems: [fileProblem(file, `expected one document, found ${filled.length}`)] }
  }
  // `--callers` takes the section as it is, too: then the paths of its problems start one level further in.
  const isBare = kind === 'AuthSection' && isRecord(document.value) && !('auth' in document.value)
  const value = isBare ? { auth: document.value } : document.value
  const inner = problemMaker(file, document, [], kind, '')
  const problem: Located<unknown>['problem'] = (path, message, options) =>
    inner(isBare ? path.slice(1) : path, message, options)
  const result = schema.safeParse(withoutNulls(value))
  if (!result.success) {
    const findings = explainIssues(result.error.issues, schema, value)
    return { problems: findings.map((finding) => problem(finding.path, finding.message, { at: finding.at })) }
  }
  const judged = judge(result.data, { document: result.data, file, line: document.start.line, problem })
  if (judged.problems.length > 0) return { problems: judged.problems }
  return { config: judged.value, warnings: judged.warnings.map(renderProblem) }
}
