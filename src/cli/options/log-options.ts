import { LOG_LEVELS, type LogLevel, LOG_FORMATS, type LogFormat, openLog, type OpenLog } from '../../report/index.ts'
import type { Io } from '../../compose/index.ts'
import { oneOf } from './option-values.ts'
import type { OptionSpec, Parsed } from './options.ts'

/** `--log-level` and `--log-format` of a command that runs until it is stopped. */
export const logOptions = (level: LogLevel) =>
  ({
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

/** What the options of `logOptions(level)` ask for. Colours only on a terminal, and not against NO_COLOR. */
export function logShape(
  options: Pick<Parsed, 'text'>,
  level: LogLevel,
  { isTerminal = false, env }: Pick<Io, 'env' | 'isTerminal'>,
): { readonly level: LogLevel; readonly format: LogFormat; readonly colours: boolean } {
  const [wantedLevel, wantedFormat] = [options.text('log-level'), options.text('log-format')]
  return {
    level: LOG_LEVELS.find((known) => known === wantedLevel) ?? level,
    format: LOG_FORMATS.find((known) => known === wantedFormat) ?? (isTerminal ? 'human' : 'json'),
    colours: isTerminal && wantsColours(env),
  }
}

/** The log on standard error as the options of `logOptions(level)` ask for it. */
export const openLogAsAsked = (options: Parsed, level: LogLevel, io: Pick<Io, 'env' | 'isTerminal'>): OpenLog =>
  openLog(logShape(options, level, io))

/** https://no-color.org, and terminals that say that they show no more than text. */
const wantsColours = (env: Io['env']): boolean => (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb'
