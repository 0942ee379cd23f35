import type { CommandSpec } from './options/options.ts'
import type { Io } from '../compose/index.ts'
/** Runs one command to its exit code. Commands are loaded when they are called, so that `validate` starts no server code. */
export type Command = (argv: readonly string[], io: Io) => Promise<number>

/** One command in the table. */
export interface CommandEntry {
  readonly summary: string
  load(): Promise<Command>
  /** Option tables of the command and of its own commands (`extauth lab token`); what a shell offers comes from them. */
  specs(): Promise<readonly CommandSpec[]>
}

/** By name, in the order of `--help`. */
export type Commands = Readonly<Record<string, CommandEntry>>
