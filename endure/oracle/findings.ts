/** What can be wrong in a run. */
export const FINDING_KINDS = [
  'wrong credential',
  "another caller's answer",
  'served who must be refused',
  'refused without a reason',
  'refusal without Retry-After',
  'doubled unsafe request',
  'lost unsafe request',
  'torn answer that looks whole',
  'answer cut without a reason',
  'late answer',
  'other body than was sent',
  'missing log line',
  'doubled log line',
  'leaked secret',
  'process ended',
  'reload not seen',
  'does not recover',
  'growth',
] as const
export type FindingKind = (typeof FINDING_KINDS)[number]

export interface Finding {
  readonly kind: FindingKind
  /** Seconds since the start of the run. */
  readonly atSeconds: number
  readonly what: string
  /** Of the answer that it is about. */
  readonly requestId?: string
  /** Faults that were on, or had just ended. */
  readonly faults: readonly string[]
}

/** The failures of a run, as they are found. */
export interface Findings {
  add(kind: FindingKind, what: string, requestId?: string): void
  readonly all: readonly Finding[]
  /** How many there were, also those that are not kept. */
  readonly count: number
}

const MOST_KEPT = 500

/** @param faults what was on at the time */
export function createFindings(elapsedSeconds: () => number, faults: () => readonly string[]): Findings {
  const all: Finding[] = []
  let count = 0
  return {
    add(kind, what, requestId) {
      count += 1
      if (all.length < MOST_KEPT)
        all.push({
          kind,
          atSeconds: elapsedSeconds(),
          what,
          faults: faults(),
          ...(requestId === undefined ? {} : { requestId }),
        })
    },
    all,
    get count() {
      return count
    },
  }
}
