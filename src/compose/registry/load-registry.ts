import type { Clock } from '../../core/index.ts'
import { loadRegistryFile, type Problem, renderProblem } from '../../load/index.ts'
import type { RegistryConfig } from '../../resources/index.ts'
import { checkFiles } from '../check-files.ts'
import { ConfigError } from '../config-error.ts'

/** A valid registry file. */
export interface LoadedRegistry {
  readonly config: RegistryConfig
  readonly warnings: readonly string[]
  /** A problem with the source of a registry, at its location in the file. */
  sourceProblem(registry: string, message: string): Problem
}

/**
 * Loads and validates the registry file, with the files and secrets of its identity providers. Throws `ConfigError`
 * with all problems of the file, else of the referenced files.
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
