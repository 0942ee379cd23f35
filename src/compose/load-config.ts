import { statSync } from 'node:fs'
import path from 'node:path'
import { type Clock, SYSTEM_CLOCK } from '../core/index.ts'
import type { InspectorMode } from '../resources/index.ts'
import {
  type Loaded,
  loadCallersFile,
  loadFiles,
  type Problem,
  type ProxyOverrides,
  renderProblem,
  type ResolvedProxy,
  resolveProxy,
  secretsDirectoryOf,
  splitExternalAuth,
  STDIN,
} from '../load/index.ts'
import { checkFiles } from './check-files.ts'
import { ConfigError } from './config-error.ts'
import { noRecognizedDocuments } from './no-recognized-documents.ts'

/** The sources of a proxy configuration: files, directories and options. */
export interface ProxySources {
  readonly configPaths: readonly string[]
  /** Content of the path `-`. */
  readonly stdin?: string | undefined
  readonly listen?: string | undefined
  readonly admin?: string | undefined
  readonly secretsDirectory?: string | undefined
  /** Short form: one route to this URL, … */
  readonly target?: string | undefined
  /** … with the config in `FILE[#NAME]`. */
  readonly externalAuth?: string | undefined
  /** File with an `auth` section. */
  readonly callers?: string | undefined
  /** Ignores the caller settings in manifests. Default false. */
  readonly ignoreManifestCallers?: boolean | undefined
  /** What the inspector captures; overrides the files. */
  readonly inspector?: InspectorMode | undefined
  readonly namespace?: string | undefined
  /** Name of the only route to run. Default: all. */
  readonly onlyRoute?: string | undefined
  readonly apiGroup?: string | undefined
}

/** The parsed documents of a proxy, before references are resolved. */
export interface LoadedSources {
  readonly loaded: Loaded
  readonly overrides: ProxyOverrides
  /** Content of the `--callers` file. */
  readonly problems: readonly Problem[]
  readonly warnings: readonly string[]
}

/** Reads all documents of a proxy and the `--callers` file. */
export async function loadSources(sources: ProxySources): Promise<LoadedSources> {
  const { listen, admin, secretsDirectory, target, namespace, apiGroup, ignoreManifestCallers } = sources
  const short = sources.externalAuth === undefined ? undefined : splitExternalAuth(sources.externalAuth)
  const paths = [...sources.configPaths, ...(short === undefined ? [] : [short.file])]
  const loaded = await loadFiles(paths, { apiGroup, stdin: sources.stdin })
  const callers =
    sources.callers === undefined
      ? undefined
      : await loadCallersFile(sources.callers, secretsDirectoryOf(loaded, secretsDirectory))
  return {
    loaded,
    overrides: {
      listen,
      admin,
      secretsDirectory,
      namespace,
      target,
      externalAuth: short?.name,
      callers: callers?.config,
      callersFiles: callers?.files,
      callersSecrets: callers?.secrets,
      ignoreManifestCallers,
      inspector: sources.inspector,
      onlyRoute: sources.onlyRoute,
      paths,
    },
    problems: callers?.problems ?? [],
    warnings: callers?.warnings ?? [],
  }
}

/**
 * Reads, validates and resolves the configuration. It also checks the content of referenced files
 * unless `readsFiles` is false (default true). Throws `ConfigError` with all problems of the documents, else of the files.
 */
export async function loadProxyConfig(
  sources: ProxySources,
  { readsFiles = true, clock = SYSTEM_CLOCK }: { readsFiles?: boolean; clock?: Clock } = {},
): Promise<ResolvedProxy> {
  const { loaded, overrides, problems, warnings } = await loadSources(sources)
  const result = resolveProxy(loaded, overrides)
  const nothing = problems.length === 0 ? noRecognizedDocuments(loaded, overrides.paths ?? []) : undefined
  const found = nothing === undefined ? [...problems, ...(result.problems ?? [])] : [nothing]
  if (found.length > 0 || result.config === undefined)
    throw new ConfigError(found.map(renderStartProblem), { problems: found })
  const { config } = result
  if (readsFiles) {
    const { problems: ofFiles } = await checkFiles(config.places, config.secretsDirectory, clock)
    if (ofFiles.length > 0) throw new ConfigError(ofFiles.map(renderProblem), { problems: ofFiles, isAboutFiles: true })
  }
  return { ...config, warnings: [...config.warnings, ...warnings] }
}

/** Renders a problem; a type that can't run here has its reason appended (decisions §1). */
const renderStartProblem = (problem: Problem): string =>
  problem.reason === 'type_not_runnable' ? `${renderProblem(problem)} (type_not_runnable)` : renderProblem(problem)

/** The files and directories whose changes trigger a reload. */
export function watchedPaths(
  sources: ProxySources,
): readonly { readonly path: string; readonly isDirectory: boolean }[] {
  const short = sources.externalAuth === undefined ? [] : [splitExternalAuth(sources.externalAuth).file]
  const callers = sources.callers === undefined ? [] : [sources.callers]
  return [...sources.configPaths, ...short, ...callers]
    .filter((name) => name !== STDIN)
    .map((name) => ({
      path: path.resolve(name),
      isDirectory: statSync(name, { throwIfNoEntry: false })?.isDirectory() === true,
    }))
}
