import { execFileSync } from 'node:child_process'
import { createRequire } from 'node:module'
import path from 'node:path'
import type { TestProject } from 'vitest/node'

const { changedSince } = createRequire(import.meta.url)('../../bin/built.cjs') as {
  readonly changedSince: (root: string) => readonly string[] | undefined
}
const root = path.join(import.meta.dirname, '../..')

/**
 * Makes dist/ of the sources as they are, before tests start the program: hundreds of times, each in half the time, in the
 * form that users get. Where one changes meanwhile, `bin/extauth.cjs` runs the sources. Not for files that are named one by
 * one: making it takes longer than a few starts save.
 */
export function setup({ vitest }: TestProject): void {
  if (
    vitest.config.watch ||
    process.argv.some((argument) => argument.endsWith('.test.ts')) ||
    changedSince(root)?.length === 0
  )
    return
  execFileSync(process.execPath, [path.join(root, 'scripts/build.ts')], { stdio: ['ignore', 'ignore', 'inherit'] })
}
