/** When failures are the service's and not those of a few callers. */
export interface RatioOptions {
  /** Minimum number of responses; at least half must fail. */
  readonly leastAnswers: number
  /** Minimum number of callers or tokens. */
  readonly leastSources: number
}

interface Answer {
  readonly atMs: number
  readonly isTrouble: boolean
  readonly source: string | undefined
}

/** The responses of the last ten seconds. */
export interface Ratio {
  /** Records a response. True if failures now count as the service's. */
  note(answer: Answer): boolean
  clear(): void
}

const WINDOW_MS = 10_000
/** Recorded responses; at a higher rate, a shorter time is sufficient. */
const MOST_ANSWERS = 200

/** A call without source, by the proxy itself, counts as one source. */
export function createRatio({ leastAnswers, leastSources }: RatioOptions): Ratio {
  let answers: Answer[] = []
  return {
    note(answer) {
      answers.push(answer)
      const since = answer.atMs - WINDOW_MS
      while (answers.length > MOST_ANSWERS || (answers[0]?.atMs ?? since) < since) answers.shift()
      if (!answer.isTrouble || answers.length < leastAnswers) return false
      const troubles = answers.filter(({ isTrouble }) => isTrouble)
      if (troubles.length * 2 < answers.length) return false
      const named = new Set(troubles.map(({ source }) => source).filter((source) => source !== undefined))
      return named.size + troubles.filter(({ source }) => source === undefined).length >= leastSources
    },
    clear: () => void (answers = []),
  }
}
