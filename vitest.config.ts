import { defineConfig } from 'vitest/config'
import { TriedAgainReporter } from './test/support/tried-again.ts'

/** Measures its own process (memory, loaded modules): needs a worker in which no other test ran. */
const OWN_WORKER = 'test/system/net/self-check.test.ts'

/** A layer is a folder of `test`; its files share workers, which saves the start of a process and the loading of all modules. */
const layer = (name: 'system' | 'slow') => ({
  extends: true as const,
  test: {
    name,
    include: [`test/${name}/**/*.test.ts`],
    exclude: [OWN_WORKER],
    isolate: false,
    globalSetup: 'test/support/fresh-program.ts',
  },
})

/**
 * Layers: `unit` starts no process and does not wait (`npm run test:fast`); `system` shows what only a process shows; `slow`
 * has sizes, crowds, browsers page by page, fuzzing and conformance suites (`npm run test:slow`). `npm test` runs the first
 * two.
 */
export default defineConfig({
  test: {
    pool: 'forks',
    // More than a CI machine has cores: files wait for other processes and for the kernel.
    maxWorkers: 4,
    testTimeout: 20_000,
    hookTimeout: 30_000,
    allowOnly: false,
    passWithNoTests: false,
    reporters: ['default', new TriedAgainReporter()],
    projects: [
      { extends: true, test: { name: 'unit', include: ['test/unit/**/*.test.ts'], isolate: false } },
      layer('system'),
      { extends: true, test: { name: 'system alone', include: [OWN_WORKER] } },
      layer('slow'),
    ],
  },
})
