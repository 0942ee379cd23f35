/** Limits of an expression at load and during evaluation (decisions §3.5). */
export const LIMITS = Object.freeze({
  /** UTF-8 bytes of an expression. */
  bytes: 10_000,
  /** Open brackets at one place; the parser recurses per bracket. */
  brackets: 64,
  /** `?:` operators in one expression; the parser recurses per operator. */
  conditionals: 100,
  /** Depth of the parsed tree; planning and evaluation recurse along it. */
  depth: 250,
  /** Macros (`exists`, `all`, `map`, …) inside the body of each other: the steps of nested ones multiply. */
  nestedMacros: 2,
  /** Elements of all list and map literals together. */
  literalElements: 256,
  /** Steps of one evaluation. A step is one element of a list or map that is visited. */
  steps: 10_000,
  /** Parsed nodes in the body of a macro that one step pays for; a larger body costs more steps per element. */
  nodesPerStep: 64,
  /** Characters of text that one step pays for in functions that read the whole text. */
  charactersPerStep: 64,
  /** Characters times compiled size of a regular expression that one step pays for. */
  matchingPerStep: 256,
  /** Compiled size of all literal regular expressions of one matcher; a character is about one. */
  patternWeight: 8_000,
  /** Depth to which two values are compared. */
  comparisonDepth: 100,
  /** Characters of a text that is converted to a number, bool, timestamp or duration. */
  convertedCharacters: 256,
})

/** Thrown when an evaluation exceeds its steps; never leaves this module. */
export class LimitReached extends Error {
  constructor() {
    super('the evaluation limit is reached')
    this.name = 'LimitReached'
  }
}

/**
 * The steps that an evaluation has left. Errors are absorbed by `||` and `&&`, so a reached limit must be read from here
 * (`exceeded`) and not from the result.
 */
export class Meter {
  #left = 0

  /** Starts a new evaluation with all steps. */
  reset(): void {
    this.#left = LIMITS.steps
  }

  /** Pays; throws `LimitReached` when there is not enough left, now and ever after until `reset`. */
  spend(steps: number): void {
    this.#left -= steps
    if (this.#left < 0) throw new LimitReached()
  }

  /** Whether this evaluation has asked for more steps than there are. */
  get exceeded(): boolean {
    return this.#left < 0
  }
}
