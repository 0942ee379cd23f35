import type { Mutation } from './mutation.ts'

const lost = ['test/unit/cache/shared/lost-purges.test.ts']
const stall = ['test/slow/cache/shared/stall.test.ts']

/** Credentials that replicas share: purges that last, a store that is not trusted with more than it may. */
export const SHARED_CACHE: readonly Mutation[] = [
  {
    rule: 'a record of purges that was lost is written again by who knows more',
    file: 'src/cache/shared-marks.ts',
    find: 'stored === undefined || base.some((mark) => !inStore.has(mark.epoch))',
    replace: 'false',
    tests: lost,
  },
  {
    rule: 'who starts without a record of purges trusts nothing older',
    file: 'src/cache/shared-marks.ts',
    find: 'if (!isBorn && stored === undefined) return start(Math.max(seen, clock.now()))',
    replace: '',
    tests: lost,
  },
  {
    rule: 'a purge of which nobody knows any more is taken for one of everything',
    file: 'src/cache/shared-marks.ts',
    find: 'return seen > last ? start(seen) : []',
    replace: 'return []',
    tests: lost,
  },
  {
    rule: 'who starts makes the others look at the record of purges',
    file: 'src/cache/shared-news.ts',
    find: 'untold.add(JOINED)',
    replace: '',
    tests: lost,
  },
  {
    rule: 'the record of purges does not end while replicas run',
    file: 'src/cache/shared-marks.ts',
    find: 'if (!isLost && !isOld && made.length === 0)',
    replace: 'if (!isLost && made.length === 0)',
    tests: lost,
  },
  {
    rule: 'a value from before a purge is not used',
    file: 'src/cache/shared-credentials.ts',
    find: ' || news.covers(slot, entry.epoch)) return undefined',
    replace: ') return undefined',
    tests: ['test/cache/shared'],
  },
  {
    rule: 'after a refusal, what others made before it is not taken',
    file: 'src/cache/shared-credentials.ts',
    find: ' || entry.obtainedAtMs < known.atMs - TRUSTED_BEFORE_MS',
    replace: '',
    tests: ['test/slow/cache/shared/outage.test.ts'],
  },
  {
    rule: 'a shared credential ends with the store’s time to live',
    file: 'src/cache/shared-credentials.ts',
    find: 'Math.min(entry.expiresAtMs, clock.now() + stored.leftMs)',
    replace: 'entry.expiresAtMs',
    tests: ['test/unit/cache/shared/clocks.test.ts'],
  },
  {
    rule: 'operations that were under way together fail as one',
    file: 'src/cache/shared-gate.ts',
    find: 'if (startedAt < failedAt) return',
    replace: '',
    tests: stall,
  },
  {
    rule: 'time in which this process did not run is not the store’s',
    file: 'src/cache/shared-time.ts',
    find: 'Math.min(performance.now() - lastTick, 2 * TICK_MS)',
    replace: 'performance.now() - lastTick',
    tests: stall,
  },
  {
    rule: 'a store that is late when it is probed is not well',
    file: 'src/cache/shared-gate.ts',
    find: 'if (watch.spentMs > budgetMs) return false',
    replace: '',
    tests: stall,
  },
  {
    rule: 'a store that flaps is looked at less often',
    file: 'src/cache/shared-gate.ts',
    find: 'wasWell ? FIRST_PROBE_MS : Math.min(LONGEST_FIRST_PROBE_MS, 2 * firstProbeMs)',
    replace: 'FIRST_PROBE_MS',
    tests: stall,
  },
  {
    rule: 'what was made alone is dropped when the store refuses it',
    file: 'src/cache/shared-backlog.ts',
    find: 'handOver().catch(() => kept.clear())',
    replace: 'handOver().catch(() => undefined)',
    tests: stall,
  },
  {
    rule: 'shared credentials never wait for replicas of Redis',
    file: 'src/compose/proxy/shared-cache.ts',
    find: ', { isDurable: false })',
    replace: ')',
    tests: ['test/slow/e2e/shared-cache-store.test.ts'],
  },
  {
    rule: 'what is kept is gone at its end',
    file: 'src/cache/ttl-lru.ts',
    find: 'if (clock.now() < entry.endMs) return entry.value',
    replace: 'if (clock.now() <= entry.endMs) return entry.value',
    tests: ['test/unit/cache/ttl-lru.test.ts'],
  },
  {
    rule: 'what is weighed is bounded in number too',
    file: 'src/cache/ttl-lru.ts',
    find: 'while (kept.size > maxEntries) kept.pop()',
    replace: '',
    tests: ['test/unit/cache/ttl-lru.test.ts'],
  },
]
