import type { StoreState } from '../../storage/index.ts'
import type { ClockNotes } from './clock.ts'
import { about, type CheckResult } from './result.ts'

/** What the stores that were opened say of themselves. */
export interface StoreNotes {
  /** To be called while they are open. */
  take(states: readonly StoreState[]): void
  lines(): readonly CheckResult[]
}

/** Clocks of replicas that share a store should be nearer to each other than this. */
const MOST_APART_MS = 2_000

/** Collects them; what several say is one line. */
export function createStoreNotes(times: ClockNotes): StoreNotes {
  const remarks = new Set<string>()
  let isBlind = false
  return {
    take(states) {
      for (const state of states) {
        if (state.clockAheadMs !== undefined) times.differs('store', state.clockAheadMs, MOST_APART_MS)
        for (const remark of state.remarks) remarks.add(remark)
        isBlind ||= state.isBlind
      }
    },
    lines: () => [
      ...[...remarks].map((remark) =>
        about('store', 'settings').warning(
          remark,
          'Set maxmemory-policy noeviction, and enough memory (docs/redis.md): what is in it was promised to somebody.',
        ),
      ),
      ...(isBlind
        ? [
            about('store', 'settings').warning(
              'its user may not ask INFO: whether it evicts is not known',
              'Give the user +info (docs/redis.md).',
            ),
          ]
        : []),
    ],
  }
}
