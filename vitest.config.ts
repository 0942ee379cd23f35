import { defineConfig } from 'vitest/config'
import { TriedAgainReporter } from './test/support/tried-again.ts'

/** Tests that measure their own process (memory, loaded modules): each file needs a worker in which no other test ran. */
const OWN_WORKER = { system: 'test/system/net/self-check.test.ts', slow: 'test/slow/forward/large-bodies.test.ts' }

/** A layer is a folder of `test`; its files share workers, which saves the start of a process and the loading of all modules. */
function layer(name: 'system' | 'slow') {
  const program = 'test/support/fresh-program.ts'
  const shared = { name, include: [`test/${name}/**/*.test.ts`], exclude: [OWN_WORKER[name]], isolate: false }
  return [
    { extends: true, test: { ...shared, globalSetup: program } },
    { extends: true, test: { name: `${name} alone`, include: [OWN_WORKER[name]] } },
  ]
}

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
      ...layer('system'),
      ...layer('slow'),
    ],
  },
})
