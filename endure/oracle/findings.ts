/** Kinds of findings in a run. */
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

/** Findings of each kind that are printed at once. */
const MOST_TOLD = 10

/**
 * @param faults what was on at the time
 * @param tell hears of the first of each kind
 */
export function createFindings(
  elapsedSeconds: () => number,
  faults: () => readonly string[],
  tell: (finding: Finding) => void = () => undefined,
): Findings {
  const all: Finding[] = []
  const ofKind = new Map<FindingKind, number>()
  let count = 0
  return {
    add(kind, what, requestId) {
      count += 1
      const times = (ofKind.get(kind) ?? 0) + 1
      ofKind.set(kind, times)
      if (all.length >= MOST_KEPT && times > MOST_TOLD) return
      const id = requestId === undefined ? {} : { requestId }
      const finding = { kind, atSeconds: elapsedSeconds(), what, faults: faults(), ...id }
      if (all.length < MOST_KEPT) all.push(finding)
      if (times <= MOST_TOLD) tell(finding)
    },
    all,
    get count() {
      return count
    },
  }
}
