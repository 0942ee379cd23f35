/** Bounds of one file; what is beyond them is an error before it costs time or memory. */
export const YAML_LIMITS = {
  bytes: 4 * 1024 * 1024,
  tokens: 300_000,
  /** Tokens that are out of place; each costs many times what another one does. */
  misplaced: 1_000,
  depth: 64,
  /** Values after aliases are expanded, over all documents of the file. */
  values: 200_000,
  documents: 2_000,
  problems: 1_000,
} as const

/** What is left of the bounds of one file, for all texts in it. */
export interface Budget {
  tokens: number
  misplaced: number
  values: number
  documents: number
}

export const fullBudget = (): Budget => {
  const { tokens, misplaced, values, documents } = YAML_LIMITS
  return { tokens, misplaced, values, documents }
}

/** A bound was reached; nothing more of this text is read. */
export class Limit extends Error {
  readonly offset: number

  constructor(offset: number, message: string) {
    super(message)
    this.offset = offset
  }
}
