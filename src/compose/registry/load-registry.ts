import type { Clock } from '../../core/index.ts'
import { loadRegistryFile, type Problem, renderProblem } from '../../load/index.ts'
import type { RegistryConfig } from '../../resources/index.ts'
import { checkFiles } from '../check-files.ts'
import { ConfigError } from '../config-error.ts'

/** A registry file that can be used. */
export interface LoadedRegistry {
  readonly config: RegistryConfig
  readonly warnings: readonly string[]
  /** A problem with the source of a registry, where the file says it. */
  sourceProblem(registry: string, message: string): Problem
}

/**
 * The registry file, whose identity providers name files and secrets that hold what they should. Throws `ConfigError` with every
 * problem of the file, else of what it names.
 */
export async function loadRegistry(path: string, clock: Clock): Promise<LoadedRegistry> {
  const { config, warnings, files, secrets, place, problems } = await loadRegistryFile(path)
  if (problems !== undefined) throw new ConfigError(problems.map(renderProblem), { problems })
  const found = await checkFiles({ files, secrets }, config.secretsDirectory, clock)
  if (found.problems.length > 0)
    throw new ConfigError(found.problems.map(renderProblem), { problems: found.problems, isAboutFiles: true })
  return {
    config,
    warnings: [...warnings, ...found.warnings.map(renderProblem)],
    sourceProblem: (registry, message) =>
      place.problem(['registries', config.registries.findIndex(({ name }) => name === registry), 'source'], message),
  }
}
