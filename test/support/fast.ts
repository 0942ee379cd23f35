import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'

/** What makes a test slow, wherever among its files it stands: other processes, browsers, stores, the whole program. */
const SLOW = /node:child_process|node:worker_threads|node:cluster|playwright-core|@modelcontextprotocol\/conformance/
/** Look at their own process, in which nothing else may have run: its memory, what was loaded into it. */
export const OWN_WORKER: readonly string[] = ['test/forward/large-bodies.test.ts', 'test/net/self-check.test.ts']
/** Slow by their nature: sizes, tens of thousands of cases, waits that only the kernel ends. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  ...OWN_WORKER,
  'test/architecture.test.ts',
  'test/cache/model.test.ts',
  'test/listen/stuck.test.ts',
  'test/load/documents/bombs.test.ts',
  'test/load/documents/many-routes.test.ts',
  'test/load/publish/verdicts.test.ts',
  'test/obtain/recovery.test.ts',
  'test/registry/paging.test.ts',
  'test/registry/paths.test.ts',
])
const IMPORT = /(?:from|import\()\s*'(\.[^']+)'/g

/**
 * Test files that start nothing and wait for nobody, below `root`: whatever they import of tests, of the lab and of scripts
 * starts no other process. What the sources themselves may start does not count.
 */
export function fastTests(root: string): string[] {
  const known = new Map<string, boolean>()
  const isSlow = (file: string): boolean => {
    const before = known.get(file)
    if (before !== undefined) return before
    known.set(file, false)
    const text = readFileSync(path.join(root, file), 'utf8')
    const imported = [...text.matchAll(IMPORT)]
      .map(([, specifier = '']) => path.posix.join(path.posix.dirname(file), specifier))
      .filter((name) => /^(test|lab|scripts)\/.*\.ts$/.test(name))
    const slow = SLOW.test(text) || imported.some(isSlow)
    known.set(file, slow)
    return slow
  }
  return globSync('test/**/*.test.ts', { cwd: root, exclude: ['test/fixtures/**', 'test/cluster/**', 'test/e2e/**'] })
    .map((name) => name.split(path.sep).join('/'))
    .filter((name) => !LEFT_OUT.has(name) && !isSlow(name))
    .sort()
}
