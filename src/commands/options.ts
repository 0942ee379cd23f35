import { parseArgs } from 'node:util'
import { nearest } from '../core/index.ts'

/** One long option of a command. Its environment variable is `EXTAUTH_` and the name in capitals. */
export interface OptionSpec {
  readonly type: 'string' | 'boolean'
  /** May be given several times; in the environment the values are separated by commas. */
  readonly multiple?: boolean
  /** What stands for the value in `--help`. */
  readonly value?: string
  readonly help: string
}

export interface CommandSpec {
  /** `extauth proxy`. */
  readonly name: string
  readonly summary: string
  /** Positional arguments as `--help` shows them; none allowed when absent. */
  readonly positionals?: string
  readonly options: Readonly<Record<string, OptionSpec>>
  /** More lines for `--help`: examples, exit codes. */
  readonly notes?: string
}

export interface Parsed {
  text(name: string): string | undefined
  list(name: string): readonly string[]
  flag(name: string): boolean
  readonly positionals: readonly string[]
}

/** Wrong words on the command line: exit code 2, and the text says what is right. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'UsageError'
  }
}

/** `--sts-endpoint` ↔ `EXTAUTH_STS_ENDPOINT`. */
export const environmentName = (option: string): string => `EXTAUTH_${option.replaceAll('-', '_').toUpperCase()}`

/**
 * Reads the arguments of one command; what is not given is looked up in `EXTAUTH_<OPTION>`. Returns 'help' for `--help`.
 * Throws `UsageError` for an unknown option (with the nearest known one), a missing value or an unexpected argument.
 */
export function parseOptions(
  spec: CommandSpec,
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Parsed | 'help' {
  if (argv.includes('--help') || argv.includes('-h')) return 'help'
  const options = Object.fromEntries(
    Object.entries(spec.options).map(([name, option]) => [
      name,
      { type: option.type, multiple: option.multiple ?? false },
    ]),
  )
  let parsed
  try {
    parsed = parseArgs({ args: [...argv], options, allowPositionals: spec.positionals !== undefined, strict: true })
  } catch (error) {
    throw new UsageError(explain(error, spec))
  }
  const values = parsed.values as Record<string, string | boolean | (string | boolean)[] | undefined>
  const text = (name: string): string | undefined => {
    const given = values[name]
    return typeof given === 'string' ? given : (env[environmentName(name)] ?? undefined) || undefined
  }
  return {
    text,
    list: (name) => {
      const given = values[name]
      if (Array.isArray(given)) return given.map(String)
      return (env[environmentName(name)] ?? '').split(',').filter((item) => item !== '')
    },
    flag: (name) => {
      if (values[name] === true) return true
      const value = env[environmentName(name)]
      if (value === undefined || value === '' || value === 'false' || value === '0') return false
      if (value === 'true' || value === '1') return true
      throw new UsageError(`${environmentName(name)} must be true or false`)
    },
    positionals: parsed.positionals,
  }
}

function explain(error: unknown, spec: CommandSpec): string {
  const message = error instanceof Error ? error.message : String(error)
  const unknown = /Unknown option '--?([^']+)'/.exec(message)?.[1]
  if (unknown !== undefined) {
    const meant = nearest(unknown, Object.keys(spec.options))
    const hint = meant === undefined ? '' : ` Did you mean --${meant}?`
    return `Unknown option --${unknown}.${hint} See ${spec.name} --help.`
  }
  const unexpected = /Unexpected argument '([^']*)'/.exec(message)?.[1]
  if (unexpected !== undefined) return `takes no argument ${JSON.stringify(unexpected)}. See ${spec.name} --help.`
  return `${message.split('\n')[0]?.replace(/\.?$/, '.')} See ${spec.name} --help.`
}

/** The text of `--help`, made from the same table that parses. */
export function renderHelp(spec: CommandSpec): string {
  const rows = Object.entries(spec.options).map(([name, option]) => {
    const value = option.type === 'string' ? ` ${option.value ?? 'VALUE'}` : ''
    return [`  --${name}${value}`, `${option.help}${option.multiple === true ? ' May be repeated.' : ''}`] as const
  })
  rows.push(['  --help', 'Shows this text.'])
  const width = Math.max(...rows.map(([left]) => left.length)) + 2
  const lines = rows.map(([left, right]) => left.padEnd(width) + right)
  const head = `${spec.summary}\n\nUsage: ${spec.name} [options]${spec.positionals === undefined ? '' : ` ${spec.positionals}`}\n`
  const tail = `\nEach option can be set by an environment variable: --sts-endpoint is EXTAUTH_STS_ENDPOINT.\n`
  return `${head}\nOptions:\n${lines.join('\n')}\n${tail}${spec.notes === undefined ? '' : `\n${spec.notes}\n`}`
}
