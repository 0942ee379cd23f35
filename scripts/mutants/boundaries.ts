import type { Mutation } from './mutation.ts'

/** Lines where one more or one less would be another rule. */
export const BOUNDARIES: readonly Mutation[] = [
  {
    rule: 'discovery paths are seen however often they are encoded',
    file: 'src/proxy/documents.ts',
    find: "for (let round = 0; round < 4 && decoded.includes('%'); round++) decoded = decodeOnce(decoded)",
    replace: 'decoded = decodeOnce(decoded)',
    tests: ['test/unit/proxy/documents.test.ts'],
  },
  {
    rule: 'a body of exactly the limit is taken, one byte more is not (with a length)',
    file: 'src/proxy/body.ts',
    find: 'if (mustKeep && length !== undefined && length > options.limitBytes)',
    replace: 'if (mustKeep && length !== undefined && length >= options.limitBytes)',
    tests: ['test/slow/proxy/body.test.ts'],
  },
  {
    rule: 'a body of exactly the limit is taken, one byte more is not (without)',
    file: 'src/proxy/body.ts',
    find: 'if (gathered.length + chunk.length > limitBytes) {',
    replace: 'if (gathered.length + chunk.length >= limitBytes) {',
    tests: ['test/slow/proxy/body.test.ts'],
  },
  {
    rule: 'a body of exactly 1 MiB is kept, so that it can be sent again',
    file: 'src/proxy/body.ts',
    find: '(length ?? 0) <= KEPT_BYTES)',
    replace: '(length ?? 0) < KEPT_BYTES)',
    tests: ['test/slow/proxy/body.test.ts'],
  },
  {
    rule: 'credentials stop 30 s early at most',
    file: 'src/cache/lifetimes.ts',
    find: 'return endMs - Math.min(MAX_MARGIN_MS, MARGIN_SHARE * (endMs - nowMs))',
    replace: 'return endMs - MARGIN_SHARE * (endMs - nowMs)',
    tests: ['test/cache'],
  },
  {
    rule: 'and a tenth of their life early where that is less',
    file: 'src/cache/lifetimes.ts',
    find: 'return endMs - Math.min(MAX_MARGIN_MS, MARGIN_SHARE * (endMs - nowMs))',
    replace: 'return endMs - MAX_MARGIN_MS',
    tests: ['test/cache'],
  },
]
