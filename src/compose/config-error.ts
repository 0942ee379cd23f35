import { asFailure, causeOf, Failure } from '../core/index.ts'
import { type ConfigPart, type ConfigPlaces, type Problem, renderProblem } from '../load/index.ts'

/** A configuration that can't be used: every problem as a line that names file, place and what is expected. */
export class ConfigError extends Error {
  /** As a `Failure` has it. */
  readonly code = 'config_error'
  readonly lines: readonly string[]
  /** What the lines are made from, where there are documents. */
  readonly problems: readonly Problem[]

  /** The documents are fine, and a file that they name is not: it may become so without a change of theirs. */
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

/** What `make` gives; a `Failure` of it becomes a `ConfigError` that says where `part` of the configuration is written. */
export function placed<T>(places: ConfigPlaces, part: ConfigPart, make: () => T): T {
  try {
    return make()
  } catch (error) {
    throw atPlace(places, part, error)
  }
}

/** The same for a listener: an address that some document names is told where; one of an option or default as it is. */
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
