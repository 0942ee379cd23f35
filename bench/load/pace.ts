/** A sent or failed request. */
export interface Outcome {
  /** When it was begun and ended, in milliseconds of `performance.now()`. */
  readonly startedAt: number
  readonly endedAt: number
  /** Undefined when it succeeded. */
  readonly problem: string | undefined
}

export interface Pace {
  readonly outcomes: readonly Outcome[]
  /** Begins no more, and resolves when all that was begun has ended. */
  stop(): Promise<void>
}

const TICK_MS = 10

/**
 * Begins `perSecond` times `work` each second, whether or not what was begun before has ended: a slow server does not slow its
 * clients down.
 */
export function keepPace(perSecond: number, work: (index: number) => Promise<void>): Pace {
  const outcomes: Outcome[] = []
  const running = new Set<Promise<void>>()
  const beganAt = performance.now()
  let begun = 0
  const one = async (index: number): Promise<void> => {
    const startedAt = performance.now()
    let problem: string | undefined
    try {
      await work(index)
    } catch (error) {
      problem = error instanceof Error ? error.message : String(error)
    }
    outcomes.push({ startedAt, endedAt: performance.now(), problem })
  }
  const ticking = setInterval(() => {
    const due = Math.floor(((performance.now() - beganAt) * perSecond) / 1000)
    while (begun < due) {
      const work = one(begun++)
      running.add(work)
      void work.finally(() => running.delete(work))
    }
  }, TICK_MS)
  return {
    outcomes,
    async stop() {
      clearInterval(ticking)
      await Promise.all(running)
    },
  }
}

export const quantile = (values: readonly number[], part: number): number => {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN
}

/** How long those took that were begun in a span of time and succeeded, in milliseconds. */
export const tookMs = (outcomes: readonly Outcome[], from: number, to: number): number[] =>
  outcomes
    .filter(({ startedAt, problem }) => startedAt >= from && startedAt < to && problem === undefined)
    .map(({ startedAt, endedAt }) => endedAt - startedAt)

/** Problems by what they are and how often. */
export function problemsOf(outcomes: readonly Outcome[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const { problem } of outcomes) if (problem !== undefined) counts[problem] = (counts[problem] ?? 0) + 1
  return counts
}

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

export const say = (text: string): void => void process.stdout.write(`${text}\n`)

/** Says whether a budget was kept; the exit code is 1 when it was not. */
export function budget(what: string, value: number, most = 0): void {
  const isKept = value <= most
  say(`${isKept ? 'kept    ' : 'EXCEEDED'} ${what}: ${value.toFixed(value % 1 === 0 ? 0 : 1)} (at most ${most})`)
  if (!isKept) process.exitCode = 1
}
