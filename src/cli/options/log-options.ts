import { LOG_LEVELS, type LogLevel, LOG_FORMATS, type LogFormat, openLog, type OpenLog } from '../../report/index.ts'
import { type Io, UsageError } from '../../compose/index.ts'
import { oneOf } from './option-values.ts'
import type { OptionSpec, Parsed } from './options.ts'

/** Log levels of the short options. */
const SHORT_LEVELS = { verbose: 'debug', quiet: 'error' } as const satisfies Record<string, LogLevel>

/** Options of a command with a log. */
export const logOptions = (level: LogLevel) =>
  ({
    verbose: { type: 'boolean', short: 'v', help: `Same as --log-level ${SHORT_LEVELS.verbose}.` },
    quiet: { type: 'boolean', short: 'q', help: `Same as --log-level ${SHORT_LEVELS.quiet}.` },
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
      help: 'Log format. Default human on a terminal, else json.',
    },
  }) as const satisfies Record<string, OptionSpec>

/** For servers that log requests. */
export const NO_CLIENTS = {
  'no-log-clients': { type: 'boolean', help: 'Omits client addresses from log lines of rejected requests.' },
} as const satisfies Record<string, OptionSpec>

/**
 * Log settings from the options of `logOptions(level)`. Colors need a terminal and no NO_COLOR. Throws `UsageError`
 * for `--verbose` with `--quiet`.
 */
export function logShape(
  options: Pick<Parsed, 'text' | 'flag'>,
  level: LogLevel,
  { isTerminal = false, env }: Pick<Io, 'env' | 'isTerminal'>,
): { readonly level: LogLevel; readonly format: LogFormat; readonly colors: boolean } {
  const short = (['verbose', 'quiet'] as const).filter((name) => options.flag(name))
  if (short.length > 1) throw new UsageError('--verbose and --quiet exclude each other')
  // Short options win over --log-level, which may come from the environment.
  const wantedLevel = short[0] === undefined ? options.text('log-level') : SHORT_LEVELS[short[0]]
  const wantedFormat = options.text('log-format')
  return {
    level: LOG_LEVELS.find((known) => known === wantedLevel) ?? level,
    format: LOG_FORMATS.find((known) => known === wantedFormat) ?? (isTerminal ? 'human' : 'json'),
    colors: isTerminal && wantsColors(env),
  }
}

/** Opens the log on standard error with the options of `logOptions(level)`. A worker adds its number to each line. */
export const openLogAsAsked = (
  options: Parsed,
  level: LogLevel,
  io: Pick<Io, 'env' | 'isTerminal' | 'isWorker'>,
): OpenLog => openLog({ ...logShape(options, level, io), ...(io.isWorker === true && { worker: process.pid }) })

/** Honors https://no-color.org and TERM=dumb. */
const wantsColors = (env: Io['env']): boolean => (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb'
