/** Bounds of one file; what is beyond them is an error before it costs time or memory. */
export const YAML_LIMITS = {
  bytes: 8 * 1024 * 1024,
  /** Ten thousand routes with a dozen fields each are fewer. */
  tokens: 1_000_000,
  /** Tokens that are out of place; each costs many times what another one does. */
  misplaced: 1_000,
  depth: 64,
  /** Values after aliases are expanded, over all documents of the file. */
  values: 500_000,
  documents: 20_000,
  problems: 1_000,
} as const

/** What is left of the bounds of one file, for all texts in it. */
export interface Budget {
  /** What `tokens` began with, for messages. */
  readonly mostTokens: number
  tokens: number
  misplaced: number
  values: number
  documents: number
}

/** Of one file. */
export const fullBudget = (): Budget => budgetOf(YAML_LIMITS)

/** Of the texts in one object of a cluster, which somebody else may have written. */
export const objectBudget = (): Budget => budgetOf({ ...YAML_LIMITS, tokens: 300_000, values: 200_000 })

const budgetOf = ({ tokens, misplaced, values, documents }: Omit<Budget, 'mostTokens'>): Budget => ({
  mostTokens: tokens,
  tokens,
  misplaced,
  values,
  documents,
})

/** Whether a bound was reached, so that a `Limit` was thrown and nothing more of the file can be read. */
export const isExhausted = ({ tokens, misplaced, values, documents }: Budget): boolean =>
  Math.min(tokens, misplaced, values, documents) < 0

/** A bound was reached; nothing more of this text is read. */
export class Limit extends Error {
  readonly offset: number

  constructor(offset: number, message: string) {
    super(message)
    this.offset = offset
  }
}
