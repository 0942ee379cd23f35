import { readFileSync } from 'node:fs'
import type { FaultLog, FaultSpan, Part } from './oracle/excuses.ts'

/** Name of the spans in which the machine gave a process of the run no time. */
export const STALL = 'the machine gave no time'

/** A process of the run. */
export interface Watched {
  readonly pid: number
  /** Parts that fail while it gets no time. */
  readonly parts: readonly Part[]
}

/** Parts in this process, or behind its gates. */
export const OWN_PARTS: readonly Part[] = [
  'provider',
  'introspection',
  'sts',
  'workspace',
  'backend',
  'store',
  'own server',
]
/** A proxy that stood still finds its deadlines over. */
export const REPLICA_PARTS: readonly Part[] = ['pause', 'own server']

export interface Stalls {
  /** How long it was for any of them, in milliseconds. */
  totalMs(): number
  /** From 1 up: so many times longer callers think, that the rest of the machine may have its time. */
  pace(): number
  stop(): void
}

const TICK_MS = 500
/** Shortest relevant stall; every deadline allows for shorter ones. */
const MOST_WAITED_SHARE = 0.6
const MOST_LATE_MS = 400
const [FREE_SHARE, PACE_PER_SHARE, SLOWEST_PACE] = [0.2, 6, 4]
const SMOOTHING = 0.1

/**
 * Notes when the machine gives this process, or others, no time: delays then are the machine's fault.
 *
 * @param processes those that run now, beside this one
 */
export function watchStalls(log: Pick<FaultLog, 'add'>, processes: () => readonly Watched[]): Stalls {
  const judge = createStallJudge(log, waitedMs)
  const self = { pid: process.pid, parts: OWN_PARTS }
  const ticking = setInterval(() => judge.look(performance.now(), [self, ...processes()]), TICK_MS)
  return { totalMs: () => judge.totalMs, pace: () => judge.pace, stop: () => clearInterval(ticking) }
}

/** Finds stalls, given the time and how long each process has waited for a processor so far, in milliseconds. */
export function createStallJudge(
  log: Pick<FaultLog, 'add'>,
  waited: (pid: number) => number | undefined,
): { look(nowMs: number, watched: readonly Watched[]): void; readonly totalMs: number; readonly pace: number } {
  let before = new Map<number, number>()
  let lastMs: number | undefined
  let last: FaultSpan | undefined
  let [totalMs, smoothed] = [0, 0]
  return {
    look(nowMs, watched) {
      const after = new Map<number, number>()
      const fromMs = lastMs ?? nowMs
      const spanMs = nowMs - fromMs
      const isLate = spanMs > TICK_MS + MOST_LATE_MS
      const stalled = new Set<Part>()
      let worst = 0
      for (const { pid, parts } of watched) {
        const now = waited(pid)
        if (now === undefined) continue
        after.set(pid, now)
        const share = spanMs === 0 ? 0 : (now - (before.get(pid) ?? now)) / spanMs
        worst = Math.max(worst, share)
        if (share > MOST_WAITED_SHARE) for (const part of parts) stalled.add(part)
      }
      if (isLate) for (const part of OWN_PARTS) stalled.add(part)
      if (stalled.size > 0) {
        totalMs += spanMs
        // A single entry while it lasts: a long run on a busy machine has thousands of ticks.
        const goesOn = last?.until === fromMs && stalled.symmetricDifference(new Set(last.parts)).size === 0
        if (last !== undefined && goesOn) last.until = nowMs
        else log.add((last = { name: STALL, parts: [...stalled], from: fromMs, until: nowMs }))
      }
      smoothed += (Math.min(1, worst) - smoothed) * SMOOTHING
      before = after
      lastMs = nowMs
    },
    get totalMs() {
      return totalMs
    },
    get pace() {
      return Math.min(SLOWEST_PACE, 1 + Math.max(0, smoothed - FREE_SHARE) * PACE_PER_SHARE)
    },
  }
}

/** How long its first thread could have run and did not (sched-stats of Linux); undefined if not counted. */
function waitedMs(pid: number): number | undefined {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1_000_000
  } catch {
    return undefined
  }
}
