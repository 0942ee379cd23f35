import type { Clock } from '../core/index.ts'
import { loadRegistryFile, type RegistryConfig, renderProblem } from '../resources/index.ts'
import { checkFiles } from './check-files.ts'
import { ConfigError } from './config-error.ts'

/**
 * The registry file, whose identity providers name files that are there and hold what they should. Throws `ConfigError` with
 * every problem of the file, else of the files that it names.
 */
export async function loadRegistry(
  path: string,
  clock: Clock,
): Promise<{ readonly config: RegistryConfig; readonly warnings: readonly string[] }> {
  const { config, warnings, files, problems } = await loadRegistryFile(path)
  if (problems !== undefined) throw new ConfigError(problems.map(renderProblem), { problems })
  const found = await checkFiles({ files, secrets: [] }, '', clock)
  if (found.problems.length > 0) throw new ConfigError(found.problems.map(renderProblem), { problems: found.problems })
  return { config, warnings: [...warnings, ...found.warnings.map(renderProblem)] }
}
