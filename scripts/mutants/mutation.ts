/** A guard in the source, and a change that disables it, which the tests must detect. */
export interface Mutation {
  /** The guarded behavior, as a sentence without a period. */
  readonly rule: string
  readonly file: string
  /** Occurs exactly once in the file: a list that does not fit the code any more is an error. */
  readonly find: string
  readonly replace: string
  /** The tests that are expected to fail, one of them at least: files or folders. */
  readonly tests: readonly string[]
}

/** The result of a mutation; one with which a test file does not load shows nothing about its tests. */
export type Verdict = 'killed' | 'survived' | 'does not load'

/** The file with the mutation in it. */
export const mutate = ({ find, replace }: Mutation, text: string): string => text.replace(find, () => replace)

/** A row of `within`: rule, what is found, what it becomes, and the tests where they are others than those of most rows. */
type Row = readonly [rule: string, find: string, replace: string, tests?: readonly string[]]

/** Mutations of lines of one file. */
export const within = (file: string, most: readonly string[], rows: readonly Row[]): readonly Mutation[] =>
  rows.map(([rule, find, replace, tests = most]) => ({ rule, file, find, replace, tests }))
