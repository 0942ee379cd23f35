import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'

/** What makes a test slow, wherever among its files it stands: other processes, browsers, stores, the whole program. */
const SLOW = /node:child_process|node:worker_threads|node:cluster|playwright-core|@modelcontextprotocol\/conformance/
/** Look at their own process, in which nothing else may have run: its memory, what was loaded into it. */
export const OWN_WORKER: readonly string[] = ['test/forward/large-bodies.test.ts', 'test/net/self-check.test.ts']
/**
 * Slow by their nature: more than 1.5 s of CPU for sizes, crowds and tens of thousands of cases, or a second and more of
 * waiting for what only the kernel or another side ends.
 */
export const LEFT_OUT: ReadonlySet<string> = new Set([
  ...OWN_WORKER,
  'test/architecture.test.ts',
  'test/authenticate/introspection-shares.test.ts',
  'test/authserver/left-over.test.ts',
  'test/authserver/registered-clients.test.ts',
  'test/authserver/sessions/refresh.test.ts',
  'test/cache/model.test.ts',
  'test/cache/shared/fleet.test.ts',
  'test/cache/shared/outage.test.ts',
  'test/cache/shared/stall.test.ts',
  'test/forward/streams.test.ts',
  'test/inspect/credentials-of-many.test.ts',
  'test/kube/informer-faults.test.ts',
  'test/kube/informer.test.ts',
  'test/listen/pipelining.test.ts',
  'test/listen/stuck.test.ts',
  'test/listen/ways.test.ts',
  'test/load/documents/bombs.test.ts',
  'test/load/documents/many-routes.test.ts',
  'test/load/publish/verdicts.test.ts',
  'test/net/protection.test.ts',
  'test/obtain/cloud-sts/rotation.test.ts',
  'test/obtain/cloud-sts/sts-failures.test.ts',
  'test/obtain/recovery.test.ts',
  'test/obtain/token-exchange-load.test.ts',
  'test/operator/webhook-server.test.ts',
  'test/proxy/body.test.ts',
  'test/proxy/hostile-clients.test.ts',
  'test/proxy/limits-named.test.ts',
  'test/proxy/streams.test.ts',
  'test/registry/large-file.test.ts',
  'test/registry/paging.test.ts',
  'test/registry/paths.test.ts',
  'test/upstreams/refresh.test.ts',
  'test/wire/differential.test.ts',
  'test/wire/pool.test.ts',
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
