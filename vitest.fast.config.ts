import { defineConfig } from 'vitest/config'
import { fastTests } from './test/support/fast.ts'
import whole from './vitest.config.ts'

/** Tests for the minute between two edits (`npm run test:fast`): no browser, no store, no other process; workers are used again. */
export default defineConfig({
  ...whole,
  test: { ...whole.test, include: fastTests(import.meta.dirname), isolate: false },
})
