/** Limits of one file, enforced before they cost time or memory. */
export const YAML_LIMITS = {
  bytes: 8 * 1024 * 1024,
  /** More than ten thousand routes with a dozen fields each need. */
  tokens: 1_000_000,
  /** Misplaced tokens; each costs many times as much as another token. */
  misplaced: 1_000,
  depth: 64,
  /** Values after aliases are expanded, over all documents of the file. */
  values: 500_000,
  documents: 20_000,
  problems: 1_000,
} as const

/** The remaining limits of one file, shared by all texts in it. */
export interface Budget {
  /** The initial value of `tokens`, for messages. */
  readonly mostTokens: number
  tokens: number
  misplaced: number
  values: number
  documents: number
}

/** Of one file. */
export const fullBudget = (): Budget => budgetOf(YAML_LIMITS)

/** Limits for the texts in one object of a cluster, which another user may have written. */
export const objectBudget = (): Budget => budgetOf({ ...YAML_LIMITS, tokens: 300_000, values: 200_000 })

const budgetOf = ({ tokens, misplaced, values, documents }: Omit<Budget, 'mostTokens'>): Budget => ({
  mostTokens: tokens,
  tokens,
  misplaced,
  values,
  documents,
})

/** Whether a limit was reached: a `Limit` was thrown and the file cannot be read further. */
export const isExhausted = ({ tokens, misplaced, values, documents }: Budget): boolean =>
  Math.min(tokens, misplaced, values, documents) < 0

/** A limit was reached; this text is not read further. */
export class Limit extends Error {
  readonly offset: number

  constructor(offset: number, message: string) {
    super(message)
    this.offset = offset
  }
}
