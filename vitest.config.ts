import { defineConfig } from 'vitest/config'
import { fastTests, OWN_WORKER } from './test/support/fast.ts'
import { TriedAgainReporter } from './test/support/tried-again.ts'

const together = fastTests(import.meta.dirname)
/** Suites of what clients send and are answered, once more where Node reads and writes all of it. */
const overBothWays = ['test/listen/**/*.test.ts', 'test/proxy/**/*.test.ts']

/**
 * Four projects. `together`: tests that start nothing and wait for nobody (`npm run test:fast` runs these alone).
 * `programs`: those that start other processes, browsers, stores. Files of both share workers, which saves each of them the
 * start of a process and the reading of all modules. `alone`: each file in a worker of its own, because its process is what
 * it looks at. `Node's way`: listeners leave plain requests to Node as well.
 */
export default defineConfig({
  test: {
    pool: 'forks',
    // More than there are cores where this is decided: files wait for other processes and for the kernel now and then.
    maxWorkers: 4,
    testTimeout: 20_000,
    hookTimeout: 30_000,
    allowOnly: false,
    passWithNoTests: false,
    reporters: ['default', new TriedAgainReporter()],
    projects: [
      { extends: true, test: { name: 'together', include: together, isolate: false } },
      {
        extends: true,
        test: {
          name: 'programs',
          include: ['test/**/*.test.ts'],
          exclude: ['test/fixtures/**', 'test/cluster/**', 'node_modules/**', ...together, ...OWN_WORKER],
          isolate: false,
          globalSetup: 'test/support/fresh-program.ts',
        },
      },
      { extends: true, test: { name: 'alone', include: [...OWN_WORKER] } },
      {
        extends: true,
        test: { name: "Node's way", include: overBothWays, env: { TEST_WAY: 'node' }, isolate: false },
      },
    ],
  },
})
