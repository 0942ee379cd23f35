import type { TestProject } from 'vitest/node'
import { isFresh, makeProgram } from './made-program.ts'

/**
 * Makes dist/ of the sources as they are, before tests start the program: hundreds of times, each in half the time, in the
 * form that users get. Where one changes meanwhile, `bin/extauth.cjs` runs the sources. Not for files that are named one by
 * one: making it takes longer than a few starts save.
 */
export function setup({ vitest }: TestProject): void {
  const isOfNamedFiles = process.argv.some((argument) => argument.endsWith('.test.ts'))
  if (!vitest.config.watch && !isOfNamedFiles && !isFresh()) makeProgram()
}
