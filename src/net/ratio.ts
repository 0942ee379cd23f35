/** When trouble among the answers of a service is the service's own, and not that of a few who ask. */
export interface RatioOptions {
  /** So many answers at least, of which half at least are trouble. */
  readonly leastAnswers: number
  /** From so many callers or tokens at least. */
  readonly leastSources: number
}

interface Answer {
  readonly atMs: number
  readonly isTrouble: boolean
  readonly source: string | undefined
}

/** The answers of the last ten seconds. */
export interface Ratio {
  /** Notes an answer; true when trouble is now as much, and from so many, that it is the service's. */
  note(answer: Answer): boolean
  clear(): void
}

const WINDOW_MS = 10_000
/** Answers that are remembered: where there are more, fewer seconds tell enough. */
const MOST_ANSWERS = 200

/** A call of the proxy itself has no source, and counts as one of its own. */
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
