import { defineConfig } from 'vitest/config'

/** With thousands of objects and minutes of nothing (`npm run test:cluster -- --scale`). */
const isScale = process.env['EXTAUTH_SCALE'] === 'true'

/** Tests against a real Kubernetes API server (`npm run test:cluster`). */
export default defineConfig({
  test: {
    include: [isScale ? 'test/cluster/scale/*.test.ts' : 'test/cluster/*.test.ts'],
    pool: 'forks',
    // One control plane at a time: each takes half a gigabyte and a core while it starts.
    maxWorkers: 1,
    testTimeout: 60_000,
    hookTimeout: 240_000,
    allowOnly: false,
    passWithNoTests: false,
  },
})
