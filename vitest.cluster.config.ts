import { defineConfig } from 'vitest/config'
import { TriedAgainReporter } from './test/support/tried-again.ts'

/** With thousands of objects and minutes of nothing (`npm run test:cluster -- --scale`). */
const isScale = process.env['EXTAUTH_SCALE'] === 'true'
/** With Helm and tools of GitOps (`npm run test:cluster -- --install`). */
const isInstall = process.env['EXTAUTH_INSTALL'] === 'true'
const folder = isScale ? 'scale/' : isInstall ? 'install/' : ''

/** Tests against a real Kubernetes API server (`npm run test:cluster`). */
export default defineConfig({
  test: {
    include: [`test/cluster/${folder}*.test.ts`],
    pool: 'forks',
    // Each control plane takes half a gigabyte, and a core while it starts; most of the time tests wait.
    maxWorkers: isScale ? 1 : 2,
    testTimeout: 60_000,
    hookTimeout: 240_000,
    reporters: ['default', new TriedAgainReporter()],
    allowOnly: false,
    passWithNoTests: false,
  },
})
