import { within } from '../mutation.ts'

/** Guards of `src/main`. */
export default [
  ...within(
    'src/main.ts',
    ['test/slow/e2e/stopping/servers.test.ts'],
    [
      [
        'the last output has its time from the end of the drain, not from the signal',
        '.finally(() => void io.stopped.then(() => setTimeout(() => process.exit(), LAST_OUTPUT_MS).unref()))',
        'void io.stopped.then(() => setTimeout(() => process.exit(), LAST_OUTPUT_MS).unref())',
      ],
      [
        'unread output keeps no stopped server alive',
        'setTimeout(() => process.exit(), LAST_OUTPUT_MS).unref()',
        'undefined',
        ['test/slow/e2e/log-readers.test.ts'],
      ],
    ],
  ),
]
