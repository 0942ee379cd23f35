import { UsageError } from '../../compose/index.ts'
import { parseArgs } from 'node:util'
import { nearest } from '../../core/index.ts'

/** Format of an option's values. Others are rejected before the command starts. */
export interface ValueKind {
  /** Follows "must be": `a port number from 0 to 65535`. */
  readonly expected: string
  accepts(text: string): boolean
  /** Shell completion: words, files or directories. */
  readonly completes?: readonly string[] | 'file' | 'directory'
}

/** One long option. Its environment variable is `EXTAUTH_` and the name in capitals. */
export type OptionSpec = SwitchSpec | ValueSpec

interface SwitchSpec {
  readonly type: 'boolean'
  /** One letter: `c` for `-c`. */
  readonly short?: string
  readonly help: string
}

interface ValueSpec {
  readonly type: 'string'
  readonly short?: string
  readonly is: ValueKind
  /** May be repeated. In the environment, commas separate the values. */
  readonly multiple?: boolean
  /** Placeholder for the value in `--help`. */
  readonly value: string
  readonly help: string
}

export interface CommandSpec {
  /** Full name: `extauth proxy`. */
  readonly name: string
  readonly summary: string
  /** Positional arguments for `--help`. None are allowed if absent. */
  readonly positionals?: string
  /** Shell completion of positional arguments. */
  readonly completes?: ValueKind['completes']
  readonly options: Readonly<Record<string, OptionSpec>>
  /** Further lines of `--help`: examples, exit codes. */
  readonly notes?: string
}

export interface Parsed {
  text(name: string): string | undefined
  list(name: string): readonly string[]
  flag(name: string): boolean
  readonly positionals: readonly string[]
}

/** `--sts-endpoint` ↔ `EXTAUTH_STS_ENDPOINT`. */
export const environmentName = (option: string): string => `EXTAUTH_${option.replaceAll('-', '_').toUpperCase()}`

/**
 * Parses the arguments of one command; missing options come from `EXTAUTH_<OPTION>`. Returns 'help' for `--help`.
 * Throws `UsageError` for an unknown option (with the nearest known one), a missing or invalid value from either
 * source, and an unexpected argument. Errors never quote a value: it may be a misplaced secret.
 */
export function parseOptions(
  spec: CommandSpec,
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Parsed | 'help' {
  const end = argv.indexOf('--')
  const words = end === -1 ? argv : argv.slice(0, end)
  if (words.includes('--help') || words.includes('-h')) return 'help'
  const options = Object.fromEntries(
    Object.entries(spec.options).map(([name, option]) => [
      name,
      {
        type: option.type,
        multiple: option.type === 'string' && option.multiple === true,
        ...(option.short === undefined ? {} : { short: option.short }),
      },
    ]),
  )
  const args = [...joinNegative(words, spec), ...argv.slice(words.length)]
  let parsed
  try {
    parsed = parseArgs({ args, options, allowPositionals: spec.positionals !== undefined, strict: true })
  } catch (error) {
    throw new UsageError(explain(error, spec))
  }
  const given = parsed.values as Record<string, string | boolean | (string | boolean)[] | undefined>
  const switches = new Set<string>()
  const values = new Map<string, readonly string[]>()
  for (const [name, option] of Object.entries(spec.options)) {
    if (option.type === 'string') values.set(name, valuesOf(name, option, given[name], env))
    else if (given[name] === true || isSet(environmentName(name), env)) switches.add(name)
  }
  return {
    text: (name) => values.get(name)?.at(-1),
    list: (name) => values.get(name) ?? [],
    flag: (name) => switches.has(name),
    positionals: parsed.positionals,
  }
}

/** Rewrites `--ttl -1m` to `--ttl=-1m`: after an option with a value, a negative number is its value. */
function joinNegative(words: readonly string[], spec: CommandSpec): string[] {
  const joined: string[] = []
  for (const word of words) {
    const before = joined.at(-1)
    const name = before?.startsWith('--') === true ? before.slice(2) : ''
    const takesValue = Object.hasOwn(spec.options, name) && spec.options[name]?.type === 'string'
    if (takesValue && /^-[.\d]/.test(word)) joined.splice(-1, 1, `--${name}=${word}`)
    else joined.push(word)
  }
  return joined
}

/** Values of one option from the command line, else from its variable. Throws `UsageError`. */
function valuesOf(
  name: string,
  option: ValueSpec,
  given: string | boolean | readonly (string | boolean)[] | undefined,
  env: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  const variable = env[environmentName(name)] ?? ''
  const isGiven = given !== undefined
  const fromVariable = option.multiple === true ? variable.split(',') : [variable]
  const values = isGiven ? [given].flat().map(String) : fromVariable.filter((item) => item !== '')
  if (values.every((value) => option.is.accepts(value))) return values
  throw new UsageError(`${isGiven ? `--${name}` : environmentName(name)} must be ${option.is.expected}`)
}

function isSet(variable: string, env: Readonly<Record<string, string | undefined>>): boolean {
  const value = env[variable]
  if (value === undefined || value === '' || value === 'false' || value === '0') return false
  if (value === 'true' || value === '1') return true
  throw new UsageError(`${variable} must be true or false`)
}

function explain(error: unknown, spec: CommandSpec): string {
  const message = error instanceof Error ? error.message : String(error)
  const [, dashes = '', unknown] = /Unknown option '(--?)([^']+)'/.exec(message) ?? []
  if (unknown === 'help') return `--help takes no value. See ${spec.name} --help.`
  if (unknown !== undefined) {
    const meant = nearest(unknown, Object.keys(spec.options))
    const hint = meant === undefined ? '' : ` Did you mean --${meant}?`
    return `Unknown option ${dashes}${unknown}.${hint} See ${spec.name} --help.`
  }
  const unexpected = /Unexpected argument '([^']*)'/.exec(message)?.[1]
  if (unexpected !== undefined) return `takes no argument ${JSON.stringify(unexpected)}. See ${spec.name} --help.`
  return `${message.split('\n')[0]?.replace(/\.?$/, '.')} See ${spec.name} --help.`
}

/**
 * Unread environment variables that resemble options of this command, each with the likely one. Skips variables of
 * other commands (`others`), since they may share an environment.
 */
export async function misspelledVariables(
  spec: CommandSpec,
  env: Readonly<Record<string, string | undefined>>,
  others: () => Promise<ReadonlySet<string>>,
): Promise<readonly { readonly variable: string; readonly meant: string }[]> {
  const names = Object.keys(spec.options)
  const found = Object.keys(env).flatMap((variable) => {
    const [, rest] = /^EXTAUTH_(\w+)$/i.exec(variable) ?? []
    const option = rest?.replaceAll('_', '-').toLowerCase()
    if (option === undefined || (names.includes(option) && variable === environmentName(option))) return []
    const meant = nearest(option, names)
    return meant === undefined ? [] : [{ variable, meant: environmentName(meant) }]
  })
  if (found.length === 0) return []
  const known = await others()
  return found.filter(({ variable }) => !known.has(variable))
}

/** Renders `--help` from the option table. */
export function renderHelp(spec: CommandSpec): string {
  const rows = Object.entries(spec.options).map(([name, option]): [string, string] => {
    const flag = `  ${option.short === undefined ? '    ' : `-${option.short}, `}--${name}`
    if (option.type === 'boolean') return [flag, option.help]
    const more = option.multiple === true ? ' May be repeated.' : ''
    return [`${flag} ${option.value}`, `${option.help}${more}`]
  })
  rows.push(['  -h, --help', 'Prints this help.'])
  const width = Math.max(...rows.map(([left]) => left.length)) + 2
  const lines = rows.map(([left, right]) => left.padEnd(width) + right)
  const [example] = Object.keys(spec.options)
  const head = `${spec.summary}\n\nUsage: ${spec.name}${example === undefined ? '' : ' [options]'}${spec.positionals === undefined ? '' : ` ${spec.positionals}`}\n`
  const tail =
    example === undefined
      ? ''
      : `\nEach option can also be set by an environment variable: --${example} is ${environmentName(example)}.\n`
  return `${head}\nOptions:\n${lines.join('\n')}\n${tail}${spec.notes === undefined ? '' : `\n${spec.notes}\n`}`
}
