import type { ValueKind } from '../options/options.ts'
/** A word of the command line that names a command: `lab`, or `lab token`. */
export interface CompletedCommand {
  readonly name: string
  readonly summary: string
  /** What it may be followed by: `token` and `login` of `lab`. */
  readonly subcommands: readonly { readonly name: string; readonly summary: string }[]
  readonly options: readonly CompletedOption[]
  /** What its other arguments are. */
  readonly completes: ValueKind['completes']
}

export interface CompletedOption {
  /** `--config`. */
  readonly flag: string
  /** `-c`; undefined where there is none. */
  readonly short: string | undefined
  readonly help: string
  readonly isRepeated: boolean
  /** Undefined for switches. */
  readonly value?: { readonly name: string; readonly completes: ValueKind['completes'] }
}
