/** One line that guards something, and a way to break it that the tests must notice. */
export interface Mutation {
  /** What the line guards, as a sentence without its end. */
  readonly rule: string
  readonly file: string
  /** Occurs exactly once in the file: a list that does not fit the code any more is an error. */
  readonly find: string
  readonly replace: string
  /** The tests that are expected to fail: files or folders. */
  readonly tests: readonly string[]
}

/** What became of a mutation. */
export type Verdict = 'killed' | 'survived'
