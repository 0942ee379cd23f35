import { describe, expect, it } from 'vitest'
import { isUnder } from '../../../src/http/index.ts'
import { RouteTree } from '../../../src/proxy/route-tree.ts'

const treeOf = (prefixes: readonly string[]): RouteTree<string> =>
  new RouteTree(prefixes.map((prefix) => [prefix, prefix] as const))

describe('the tree of routes', () => {
  it('finds what a search through all prefixes finds, the longest first', () => {
    const words = ['', 'a', 'b', 'ab', 'A', '%61', 'x-y']
    const paths = words.flatMap((one) => words.flatMap((two) => words.map((three) => `/${one}/${two}/${three}`)))
    paths.push('/', '//', '/a', '/a/', '/ab/', '/a//b')
    const sets = [['/'], ['/a', '/a/b', '/ab'], ['/', '/a/b', '/b/a/A'], ['/a/b/x-y', '/%61'], []]
    for (const prefixes of sets) {
      const sorted = prefixes.toSorted((one, other) => other.length - one.length)
      const tree = treeOf(prefixes)
      for (const path of paths)
        expect([path, tree.find(path)]).toEqual([path, sorted.find((prefix) => isUnder(prefix, path))])
    }
  })

  it('costs the same with 10,000 routes as with ten, the last of them too', () => {
    const steps = (count: number): number => {
      const tree = treeOf(Array.from({ length: count }, (_, index) => `/team-${index % 100}/server-${index}`))
      const path = `/team-${(count - 1) % 100}/server-${count - 1}/mcp`
      for (let round = 0; round < 20_000; round++) tree.find(path)
      const startedAt = performance.now()
      for (let round = 0; round < 200_000; round++) tree.find(path)
      return performance.now() - startedAt
    }
    const few = Math.min(steps(10), steps(10), steps(10))
    // A linear search would take several hundred times as long; caches and a busy machine would not.
    expect(Math.min(steps(10_000), steps(10_000), steps(10_000))).toBeLessThan(20 * few)
  })
})
