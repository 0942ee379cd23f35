import { asFailure, CredentialRefusal } from '../core/index.ts'
import { ConfigError, EXIT, type Io, UsageError } from '../compose/index.ts'
import type { LogLevel, OpenLog } from '../report/index.ts'
import { logOptions, openLogAsAsked } from './options/log-options.ts'
import { isListenAddress } from './options/option-values.ts'
import { type CommandSpec, misspelledVariables, type Parsed, parseOptions, renderHelp } from './options/options.ts'

/** What a command is called with. */
export interface Call {
  readonly options: Parsed
  readonly io: Io
}

/** The same, of a command that has a log. It is flushed when the command has ended. */
export interface LoggedCall extends Call {
  readonly log: OpenLog
}

/** Runs one command to its exit code. Commands are loaded when they are called, so that `validate` starts no server code. */
export interface Command {
  (argv: readonly string[], io: Io, others?: OthersVariables): Promise<number>
  /** What `--help` shows and shells offer. */
  readonly spec: CommandSpec
}

/** The variables of all commands. */
export type OthersVariables = () => Promise<ReadonlySet<string>>

/** One command in the table. */
export interface CommandEntry {
  readonly summary: string
  readonly load: () => Promise<Command>
  /** Its own commands: `token` of `extauth lab token`. */
  readonly commands?: Readonly<Record<string, () => Promise<Command>>>
}

/** By name, in the order of `--help`. */
export type Commands = Readonly<Record<string, CommandEntry>>

/** The option tables of a command and of its own commands. */
export const specsOf = async ({ load, commands = {} }: CommandEntry): Promise<readonly CommandSpec[]> =>
  (await Promise.all([load, ...Object.values(commands)].map((each) => each()))).map(({ spec }) => spec)

/** What a command could not do, as a sentence: exit code 1. */
export class CommandFailed extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'CommandFailed'
  }
}

/**
 * A command that prints what it found, and is done. `--help`, wrong usage, files that cannot be used (both exit code 2) and what
 * failed (1) are told here, once for all commands; what is no failure of ours is thrown on.
 */
export const command = (spec: CommandSpec, run: (call: Call) => number | Promise<number>): Command => {
  const start = async (options: Parsed, io: Io, others: OthersVariables): Promise<number> => {
    for (const { variable, meant } of await misspelledVariables(spec, io.env, others))
      io.stderr(`${spec.name}: ${sentenceOf(variable, meant)}\n`)
    return run({ options, io })
  }
  return Object.assign(framed(spec, start, EXIT.usage), { spec })
}

/**
 * A command that goes on until something ends it, with a log on standard error (`level` where nothing else is asked for). A
 * configuration that cannot be used is exit code 1.
 */
export const loggedCommand = (
  spec: CommandSpec,
  level: LogLevel,
  run: (call: LoggedCall) => Promise<number>,
): Command => {
  const whole = { ...spec, options: { ...spec.options, ...logOptions(level) } }
  const start = async (options: Parsed, io: Io, others: OthersVariables): Promise<number> => {
    const log = openLogAsAsked(options, level, io)
    // A worker has the environment of its supervisor, which has told it.
    for (const { variable, meant } of io.isWorker === true ? [] : await misspelledVariables(whole, io.env, others))
      log.warn({ variable }, sentenceOf(variable, meant))
    try {
      return await run({ options, io, log })
    } finally {
      log.flush()
    }
  }
  return Object.assign(framed(whole, start, EXIT.failed), { spec: whole })
}

const sentenceOf = (variable: string, meant: string): string => `nothing reads ${variable}; did you mean ${meant}?`

const NO_OTHERS: OthersVariables = () => Promise.resolve(new Set())

/** Options before, errors after. */
const framed =
  (
    spec: CommandSpec,
    start: (options: Parsed, io: Io, others: OthersVariables) => Promise<number>,
    refused: number,
  ): ((argv: readonly string[], io: Io, others?: OthersVariables) => Promise<number>) =>
  async (argv, io, others = NO_OTHERS) => {
    try {
      const options = parseOptions(spec, argv, io.env)
      if (options !== 'help') return await start(options, io, others)
      io.stdout(renderHelp(spec))
      return EXIT.fine
    } catch (error) {
      return tell(error, spec, refused, io)
    }
  }

/** Prints what is wrong, with the name of the command before it; gives the exit code. Throws what is a bug. */
function tell(error: unknown, { name, options }: CommandSpec, refused: number, io: Pick<Io, 'stderr'>): number {
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
    if (refused === EXIT.failed) io.stderr(`${name}: the configuration cannot be used; nothing was started.\n`)
    return refused
  }
  const failure = asFailure(error)
  if (failure.code === 'internal_error') throw error
  const { code } = (failure.cause ?? {}) as { code?: unknown }
  const addresses = Object.keys(options).filter((option) => isListenAddress(options[option]))
  const hint =
    code === 'EADDRINUSE' && addresses.length > 0
      ? ` The address is in use; choose another one with ${addresses.map((option) => `--${option}`).join(' or ')}.`
      : ''
  io.stderr(`${name}: ${(failure.detail ?? failure.code).replace(/[.]?$/, '.')}${hint}\n`)
  return refused
}
