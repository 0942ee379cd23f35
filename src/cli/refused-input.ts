import { Failure } from '../core/index.ts'
import { ConfigError, EXIT, type Io, UsageError } from '../compose/index.ts'

/**
 * Tells what is wrong with the files of a command that only reads them; gives its exit code. Throws `UsageError` for a
 * `config_error` without a place, and what is neither.
 */
export function refuseInput(error: unknown, io: Pick<Io, 'stderr'>): number {
  if (error instanceof ConfigError) {
    for (const line of error.lines) io.stderr(`${line}\n`)
    return EXIT.usage
  }
  if (error instanceof Failure && error.code === 'config_error') throw new UsageError(error.detail ?? error.code)
  throw error
}
