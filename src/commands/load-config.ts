import { statSync } from 'node:fs'
import path from 'node:path'
import {
  type InspectorMode,
  loadCallersFile,
  loadFiles,
  type Problem,
  renderProblem,
  type ResolvedProxy,
  resolveProxy,
  splitExternalAuth,
} from '../resources/index.ts'
import { ConfigError } from './config-error.ts'

/** Where a proxy's configuration comes from: files, directories, and what the command line says beside them. */
export interface ProxySources {
  readonly configPaths: readonly string[]
  readonly listen?: string | undefined
  readonly admin?: string | undefined
  readonly secretsDirectory?: string | undefined
  /** The short form: one route to this URL … */
  readonly target?: string | undefined
  /** … with the config in `FILE[#NAME]`. */
  readonly externalAuth?: string | undefined
  /** File with an `auth` section. */
  readonly callers?: string | undefined
  /** What manifests say about who may call is left alone. Default false. */
  readonly ignoreManifestCallers?: boolean | undefined
  /** What the inspector captures; beats the files. */
  readonly inspector?: InspectorMode | undefined
  readonly namespace?: string | undefined
  readonly apiGroup?: string | undefined
}

/** Reads, checks and resolves everything anew. Throws `ConfigError` with every problem of every document. */
export async function loadProxyConfig(sources: ProxySources): Promise<ResolvedProxy> {
  const { listen, admin, secretsDirectory, target, namespace, apiGroup } = sources
  const short = sources.externalAuth === undefined ? undefined : splitExternalAuth(sources.externalAuth)
  const paths = [...sources.configPaths, ...(short === undefined ? [] : [short.file])]
  const loaded = await loadFiles(paths, apiGroup === undefined ? {} : { apiGroup })
  const callers = sources.callers === undefined ? undefined : await loadCallersFile(sources.callers)
  const result = resolveProxy(loaded, {
    listen,
    admin,
    secretsDirectory,
    namespace,
    target,
    externalAuth: short?.name,
    callers: callers?.config,
    ignoreManifestCallers: sources.ignoreManifestCallers,
    inspector: sources.inspector,
  })
  const problems: readonly Problem[] = [...(callers?.problems ?? []), ...(result.problems ?? [])]
  if (problems.length > 0 || result.config === undefined) throw new ConfigError(problems.map(renderLine))
  return {
    ...result.config,
    warnings: [...result.config.warnings, ...(callers?.config === undefined ? [] : callers.warnings)],
  }
}

/** What is loaded but can't run here is told apart by its reason (decisions §1). */
const renderLine = (problem: Problem): string =>
  problem.reason === 'type_not_runnable' ? `${renderProblem(problem)} (type_not_runnable)` : renderProblem(problem)

/** The files and directories of which a change is a reason to load again. */
export function watchedPaths(
  sources: ProxySources,
): readonly { readonly path: string; readonly isDirectory: boolean }[] {
  const short = sources.externalAuth === undefined ? [] : [splitExternalAuth(sources.externalAuth).file]
  const callers = sources.callers === undefined ? [] : [sources.callers]
  return [...sources.configPaths, ...short, ...callers].map((name) => ({
    path: path.resolve(name),
    isDirectory: statSync(name, { throwIfNoEntry: false })?.isDirectory() === true,
  }))
}
