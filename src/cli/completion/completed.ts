import type { ValueKind } from '../options/options.ts'
/** A command as typed: `lab`, or `lab token`. */
export interface CompletedCommand {
  readonly name: string
  readonly summary: string
  /** Subcommands: `token` and `login` of `lab`. */
  readonly subcommands: readonly { readonly name: string; readonly summary: string }[]
  readonly options: readonly CompletedOption[]
  /** Candidates for its positional arguments. */
  readonly completes: ValueKind['completes']
}

export interface CompletedOption {
  /** With its dashes: `--config`. */
  readonly flag: string
  /** One letter with its dash: `-c`. Undefined if there is none. */
  readonly short: string | undefined
  readonly help: string
  readonly isRepeated: boolean
  /** Undefined for Boolean options. */
  readonly value?: { readonly name: string; readonly completes: ValueKind['completes'] }
}
