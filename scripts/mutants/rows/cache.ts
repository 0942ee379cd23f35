import { within } from '../mutation.ts'

/** Guards of `src/cache`. */
export default [
  ...within(
    'src/cache/credential-cache.ts',
    ['test/unit/cache/single-flight.test.ts'],
    [
      [
        'a rejection does not apply to another token of the same caller',
        'if (flight.tokenDigest === slot.tokenDigest) return flight.promise',
        'if (flight.tokenDigest !== undefined) return flight.promise',
      ],
    ],
  ),
  ...within(
    'src/cache/hash-key.ts',
    ['test/unit/cache/hash-key.test.ts'],
    [['parts of a key do not run into each other', '`${part.length}:${part}`', 'part']],
  ),
  ...within(
    'src/cache/lifetimes.ts',
    ['test/unit/cache', 'test/system/cache', 'test/slow/cache'],
    [
      [
        'a refused token is not shown to the tenant again',
        'if (failure.refusedForMs !== undefined) return failure.refusedForMs',
        '',
        ['test/unit/obtain/obo-refusals.test.ts'],
      ],
      [
        'a refused exchange is not asked for again for 10 s',
        'const DENIED_PAUSE_MS = 10_000',
        'const DENIED_PAUSE_MS = 1',
        ['test/unit/cache/negatives.test.ts'],
      ],
      [
        'credentials stop 30 s early at most',
        'return endMs - Math.min(MAX_MARGIN_MS, MARGIN_SHARE * (endMs - nowMs))',
        'return endMs - MARGIN_SHARE * (endMs - nowMs)',
      ],
      [
        'and a tenth of their life early where that is less',
        'return endMs - Math.min(MAX_MARGIN_MS, MARGIN_SHARE * (endMs - nowMs))',
        'return endMs - MAX_MARGIN_MS',
      ],
    ],
  ),
  ...within(
    'src/cache/pauses.ts',
    ['test/unit/authenticate/results.test.ts', 'test/slow/authserver/sessions/refresh.test.ts'],
    [
      [
        'cached entries do not live longer when the clock is set back',
        'isDuring(pause, clock.now()) ? pause.value : undefined',
        'pause?.value',
      ],
    ],
  ),
  ...within(
    'src/cache/shared-backlog.ts',
    ['test/slow/cache/shared/stall.test.ts'],
    [
      [
        'what was made alone is dropped when the store refuses it',
        'handOver().catch(() => kept.clear())',
        'handOver().catch(() => undefined)',
      ],
    ],
  ),
  ...within(
    'src/cache/shared-credentials.ts',
    ['test/slow/cache/shared/fleet.test.ts'],
    [
      [
        'a request has one deadline, also for a shared call',
        '?? makeAlone(slot, endsAtMs)',
        '?? makeAlone(slot, after(monotonicNow(), slot.deadlineMs))',
      ],
      [
        'a value from before a purge is not used',
        ' || invalidations.covers(slot, entry.epoch)) return undefined',
        ') return undefined',
        ['test/unit/cache/shared', 'test/system/cache/shared', 'test/slow/cache/shared'],
      ],
      [
        'after a refusal, what others made before it is not taken',
        ' || entry.obtainedAtMs < known.atMs - TRUSTED_BEFORE_MS',
        '',
        ['test/slow/cache/shared/outage.test.ts'],
      ],
      [
        'a shared credential ends with the store’s time to live',
        'Math.min(entry.expiresAtMs, clock.now() + stored.leftMs)',
        'entry.expiresAtMs',
        ['test/unit/cache/shared/clocks.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/cache/shared-gate.ts',
    ['test/slow/cache/shared/stall.test.ts'],
    [
      ['concurrent operations fail as one', 'if (startedAt < failedAt) return', ''],
      ['a store that is late when it is probed is not well', 'if (watch.spentMs > budgetMs) return false', ''],
      [
        'a store that flaps is looked at less often',
        'wasWell ? FIRST_PROBE_MS : Math.min(LONGEST_FIRST_PROBE_MS, 2 * firstProbeMs)',
        'FIRST_PROBE_MS',
      ],
    ],
  ),
  ...within(
    'src/cache/shared-marks.ts',
    ['test/unit/cache/shared/lost-purges.test.ts'],
    [
      [
        'a record of purges that was lost is written again by who knows more',
        'stored === undefined || base.some((mark) => !inStore.has(mark.epoch))',
        'false',
      ],
      [
        'who starts without a record of purges trusts nothing older',
        'if (!isBorn && stored === undefined) return start(Math.max(seen, clock.now()))',
        '',
      ],
      ['an unknown purge counts as a purge of everything', 'return seen > last ? start(seen) : []', 'return []'],
      [
        'the record of purges does not end while replicas run',
        'if (!isLost && !isOld && made.length === 0)',
        'if (!isLost && made.length === 0)',
      ],
    ],
  ),
  ...within(
    'src/cache/invalidation-channel.ts',
    ['test/unit/cache/shared/lost-purges.test.ts'],
    [['who starts makes the others look at the record of purges', 'untold.add(JOINED)', '']],
  ),
  ...within(
    'src/cache/shared-time.ts',
    ['test/slow/cache/shared/stall.test.ts'],
    [
      [
        'time in which this process did not run is not the store’s',
        'Math.min(monotonicNow() - lastTick, 2 * TICK_MS)',
        'monotonicNow() - lastTick',
      ],
    ],
  ),
  ...within(
    'src/cache/ttl-lru.ts',
    ['test/unit/cache/ttl-lru.test.ts'],
    [
      [
        'what is kept is gone at its end',
        'if (clock.now() < entry.endMs) return entry.value',
        'if (clock.now() <= entry.endMs) return entry.value',
      ],
      ['what is weighed is bounded in number too', 'while (kept.size > maxEntries) kept.pop()', ''],
    ],
  ),
]
