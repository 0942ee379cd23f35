import { asFailure, CredentialRefusal } from '../core/index.ts'
import { ConfigError, EXIT, type Io, UsageError } from '../compose/index.ts'
import type { LogLevel, OpenLog } from '../report/index.ts'
import { logOptions, openLogAsAsked } from './options/log-options.ts'
import { isListenAddress } from './options/option-values.ts'
import { type CommandSpec, misspelledVariables, type Parsed, parseOptions, renderHelp } from './options/options.ts'

/** Input of a command. */
export interface Call {
  readonly options: Parsed
  readonly io: Io
}

/** Input of a command with a log. The log is flushed when the command returns. */
export interface LoggedCall extends Call {
  readonly log: OpenLog
}

/**
 * Runs one command and returns its exit code. Commands are imported on use, so that `validate` loads no server code.
 */
export interface Command {
  (argv: readonly string[], io: Io, others?: AllVariables): Promise<number>
  /** Options for `--help` and shell completion. */
  readonly spec: CommandSpec
}

/** The environment variables of all commands. */
export type AllVariables = () => Promise<ReadonlySet<string>>

export interface CommandEntry {
  readonly summary: string
  readonly load: () => Promise<Command>
  /** Subcommands: `token` of `extauth lab token`. */
  readonly commands?: Readonly<Record<string, () => Promise<Command>>>
}

/** Commands by name, in the order of `--help`. */
export type Commands = Readonly<Record<string, CommandEntry>>

/** The option tables of a command and its subcommands. */
export const specsOf = async ({ load, commands = {} }: CommandEntry): Promise<readonly CommandSpec[]> =>
  (await Promise.all([load, ...Object.values(commands)].map((each) => each()))).map(({ spec }) => spec)

/** A command failed: exit code 1. The message is printed. */
export class CommandFailed extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'CommandFailed'
  }
}

/**
 * A command that prints a result and exits. Handles `--help`, invalid usage and unusable files (exit code 2), and
 * failures (1) for all commands. Rethrows unexpected errors.
 */
export const command = (spec: CommandSpec, run: (call: Call) => number | Promise<number>): Command => {
  const start = async (options: Parsed, io: Io, others: AllVariables): Promise<number> => {
    for (const { variable, meant } of await misspelledVariables(spec, io.env, others))
      io.stderr(`${spec.name}: ${typoWarning(variable, meant)}\n`)
    return run({ options, io })
  }
  return Object.assign(framed(spec, start, EXIT.usage), { spec })
}

/**
 * A command that runs until stopped, with a log on standard error (`level` by default). An unusable configuration is
 * exit code 1.
 */
export const loggedCommand = (
  spec: CommandSpec,
  level: LogLevel,
  run: (call: LoggedCall) => Promise<number>,
): Command => {
  const withLog = { ...spec, options: { ...spec.options, ...logOptions(level) } }
  const start = async (options: Parsed, io: Io, others: AllVariables): Promise<number> => {
    const log = openLogAsAsked(options, level, io)
    // The supervisor has already logged these; a worker inherits its environment.
    for (const { variable, meant } of io.isWorker === true ? [] : await misspelledVariables(withLog, io.env, others))
      log.warn({ variable }, typoWarning(variable, meant))
    try {
      return await run({ options, io, log })
    } finally {
      log.flush()
    }
  }
  return Object.assign(framed(withLog, start, EXIT.failed), { spec: withLog })
}

const typoWarning = (variable: string, meant: string): string =>
  `${variable} is not a known variable; did you mean ${meant}?`

const NO_VARIABLES: AllVariables = () => Promise.resolve(new Set())

/** Parses options before the command and prints errors after it. */
const framed =
  (
    spec: CommandSpec,
    start: (options: Parsed, io: Io, others: AllVariables) => Promise<number>,
    refused: number,
  ): ((argv: readonly string[], io: Io, others?: AllVariables) => Promise<number>) =>
  async (argv, io, others = NO_VARIABLES) => {
    try {
      const options = parseOptions(spec, argv, io.env)
      if (options !== 'help') return await start(options, io, others)
      io.stdout(renderHelp(spec))
      return EXIT.fine
    } catch (error) {
      return report(error, spec, refused, io)
    }
  }

/** Prints an error prefixed with the command name and returns the exit code. Rethrows unexpected errors. */
function report(error: unknown, { name, options }: CommandSpec, refused: number, io: Pick<Io, 'stderr'>): number {
  if (error instanceof UsageError) {
    io.stderr(`${name}: ${error.message}\n`)
    return EXIT.usage
  }
  if (error instanceof CommandFailed || error instanceof CredentialRefusal) {
    io.stderr(`${name}: ${error.message}\n`)
    return EXIT.failed
  }
  if (error instanceof ConfigError) {
    for (const line of error.lines) io.stderr(`${line}\n`)
    if (refused === EXIT.failed) io.stderr(`${name}: the configuration is invalid; nothing was started.\n`)
    return refused
  }
  const failure = asFailure(error)
  if (failure.code === 'internal_error') throw error
  const { code } = (failure.cause ?? {}) as { code?: unknown }
  const addresses = Object.keys(options).filter((option) => isListenAddress(options[option]))
  const hint =
    code === 'EADDRINUSE' && addresses.length > 0
      ? ` The address is in use; choose a different one with ${addresses.map((option) => `--${option}`).join(' or ')}.`
      : ''
  io.stderr(`${name}: ${(failure.detail ?? failure.code).replace(/[.]?$/, '.')}${hint}\n`)
  return refused
}
