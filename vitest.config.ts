import { defineConfig } from 'vitest/config'
import { fastTests } from './test/support/fast.ts'
import { TriedAgainReporter } from './test/support/tried-again.ts'

const together = fastTests(import.meta.dirname)

/**
 * Two projects. `together`: tests that start nothing and wait for nobody share a worker, which saves each file its start
 * and the reading of all modules (`npm run test:fast` runs these alone). `apart`: the others, each file in a worker of its own.
 */
export default defineConfig({
  test: {
    pool: 'forks',
    // One more than there are cores where this is decided: most tests wait for other processes and for the kernel.
    maxWorkers: 3,
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
          name: 'apart',
          include: ['test/**/*.test.ts'],
          exclude: ['test/fixtures/**', 'test/cluster/**', 'node_modules/**', ...together],
        },
      },
    ],
  },
})
