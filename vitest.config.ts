import { defineConfig } from 'vitest/config'
import { TriedAgainReporter } from './test/support/tried-again.ts'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/fixtures/**', 'test/cluster/**', 'node_modules/**'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 20_000,
    hookTimeout: 30_000,
    allowOnly: false,
    passWithNoTests: false,
    reporters: ['default', new TriedAgainReporter()],
  },
})
