import { LOG_LEVELS, type LogLevel, LOG_FORMATS, type LogFormat, openLog, type OpenLog } from '../../report/index.ts'
import { type Io, UsageError } from '../../compose/index.ts'
import { oneOf } from './option-values.ts'
import type { OptionSpec, Parsed } from './options.ts'

/** What the short forms stand for. */
const SHORT_LEVELS = { verbose: 'debug', quiet: 'error' } as const satisfies Record<string, LogLevel>

/** The options of a command that has a log. */
export const logOptions = (level: LogLevel) =>
  ({
    verbose: { type: 'boolean', short: 'v', help: `The same as --log-level ${SHORT_LEVELS.verbose}.` },
    quiet: { type: 'boolean', short: 'q', help: `The same as --log-level ${SHORT_LEVELS.quiet}.` },
    'log-level': {
      type: 'string',
      value: 'LEVEL',
      is: oneOf(LOG_LEVELS),
      help: `${LOG_LEVELS.join(', ')}. Default ${level}.`,
    },
    'log-format': {
      type: 'string',
      value: 'human|json',
      is: oneOf(LOG_FORMATS),
      help: 'Log lines for people or for programs. Default human on a terminal, else json.',
    },
  }) as const satisfies Record<string, OptionSpec>

/** Of a server that logs requests. */
export const NO_CLIENTS = {
  'no-log-clients': { type: 'boolean', help: 'Log lines of refused requests name no client address.' },
} as const satisfies Record<string, OptionSpec>

/**
 * What the options of `logOptions(level)` ask for. Colours only on a terminal, and not against NO_COLOR. Throws `UsageError` for
 * `--verbose` with `--quiet`.
 */
export function logShape(
  options: Pick<Parsed, 'text' | 'flag'>,
  level: LogLevel,
  { isTerminal = false, env }: Pick<Io, 'env' | 'isTerminal'>,
): { readonly level: LogLevel; readonly format: LogFormat; readonly colours: boolean } {
  const short = (['verbose', 'quiet'] as const).filter((name) => options.flag(name))
  if (short.length > 1) throw new UsageError('takes one of --verbose and --quiet')
  // They go before --log-level: that one may come from the environment.
  const wantedLevel = short[0] === undefined ? options.text('log-level') : SHORT_LEVELS[short[0]]
  const wantedFormat = options.text('log-format')
  return {
    level: LOG_LEVELS.find((known) => known === wantedLevel) ?? level,
    format: LOG_FORMATS.find((known) => known === wantedFormat) ?? (isTerminal ? 'human' : 'json'),
    colours: isTerminal && wantsColours(env),
  }
}

/** The log on standard error as the options of `logOptions(level)` ask for it; a worker says in each line which one it is. */
export const openLogAsAsked = (
  options: Parsed,
  level: LogLevel,
  io: Pick<Io, 'env' | 'isTerminal' | 'isWorker'>,
): OpenLog => openLog({ ...logShape(options, level, io), ...(io.isWorker === true && { worker: process.pid }) })

/** https://no-color.org, and terminals that say that they show no more than text. */
const wantsColours = (env: Io['env']): boolean => (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb'
