import { asFailure, causeOf, Failure } from '../core/index.ts'
import { type ConfigPart, type ConfigPlaces, type Problem, renderProblem } from '../load/index.ts'

/** An invalid configuration. Each line names the file, the location and the expected value of one problem. */
export class ConfigError extends Error {
  /** The code of a `Failure`. */
  readonly code = 'config_error'
  readonly lines: readonly string[]
  /** The problems behind `lines`; empty for errors outside documents. */
  readonly problems: readonly Problem[]

  /** The documents are valid but a file they reference is not: a later reload may succeed without an edit. */
  readonly isAboutFiles: boolean

  constructor(
    lines: readonly string[],
    options: { cause?: unknown; problems?: readonly Problem[]; isAboutFiles?: boolean } = {},
  ) {
    super(lines[0] ?? 'the configuration cannot be used', { cause: options.cause })
    this.name = 'ConfigError'
    this.lines = lines
    this.problems = options.problems ?? []
    this.isAboutFiles = options.isAboutFiles ?? false
  }
}

/** Returns the result of `make`. A `Failure` of it becomes a `ConfigError` with the location of `part`. */
export function placed<T>(places: ConfigPlaces, part: ConfigPart, make: () => T): T {
  try {
    return make()
  } catch (error) {
    throw atPlace(places, part, error)
  }
}

/** `placed` for a listener. An address from an option or a default has no location: its error stays as it is. */
export async function placedListener<T>(
  places: ConfigPlaces,
  listener: 'listen' | 'admin',
  make: () => Promise<T>,
): Promise<T> {
  try {
    return await make()
  } catch (error) {
    throw places.names(listener) ? atPlace(places, { listener }, error, HINTS[listener]) : error
  }
}

const HINTS = { listen: '--listen', admin: '--admin' }

function atPlace(places: ConfigPlaces, part: ConfigPart, error: unknown, option?: string): unknown {
  if (!(error instanceof Failure) || error.code === 'internal_error') return error
  const isInUse = option !== undefined && causeOf(error.cause).code === 'EADDRINUSE'
  const hint = isInUse ? `; the address is in use, choose another one here or with ${option}` : ''
  const problem = places.problem(part, `${error.detail ?? asFailure(error).code}${hint}`, error.secret)
  return new ConfigError([renderProblem(problem)], { cause: error, problems: [problem] })
}
