import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { renderPage } from '../../../src/registry/listing/page.ts'
import type { Snapshot } from '../../../src/registry/listing/snapshot.ts'
import { entry, snapshotOf, type List } from '../../support/registry/setup.ts'

const name = fc.stringMatching(/^[a-cA-C.-]{1,3}\/[a-c._-]{1,3}$/)
const version = fc.stringMatching(/^[0-3]\.[0-3]\.[0-3](-[a-c])?$/)
const listing = fc
  .uniqueArray(fc.tuple(name, version, fc.constantFrom('active', 'deprecated', 'deleted')), {
    selector: ([name, version]) => `${name} ${version}`,
    maxLength: 60,
  })
  .map((items) => items.map(([name, version, status]) => entry(name, version, { status })))

const ids = (list: List) => list.servers.map(({ server }) => `${server.name} ${server.version}`)
const page = (snapshot: Snapshot, query: Parameters<typeof renderPage>[1]) =>
  JSON.parse(renderPage(snapshot, query)) as List

/** Walks all pages, as a client does, from the first or from a cursor. */
function walk(snapshot: Snapshot, query: Parameters<typeof renderPage>[1], from?: string): string[] {
  const seen: string[] = []
  let cursor = from
  do {
    const list = page(snapshot, { ...query, cursor })
    expect(list.servers.length).toBeLessThanOrEqual(query.limit)
    expect(list.metadata.count).toBe(list.servers.length)
    seen.push(...ids(list))
    cursor = list.metadata.nextCursor
    if (cursor !== undefined) expect(list.servers).toHaveLength(query.limit)
  } while (cursor !== undefined)
  return seen
}

const filters = fc.record({
  search: fc.option(fc.constantFrom('a', 'B', '../../support/registry/', 'zz'), { nil: undefined }),
  version: fc.option(fc.constantFrom('latest', '1.0.0', '2.2.2'), { nil: undefined }),
  include_deleted: fc.boolean(),
})

describe('paging', () => {
  it('gives every entry that matches exactly once, whatever the limit, the filters and the order in the file', async () => {
    await fc.assert(
      fc.asyncProperty(
        listing,
        filters,
        fc.integer({ min: 1, max: 100 }),
        fc.nat(),
        async (items, query, limit, turn) => {
          const snapshot = await snapshotOf(items)
          const paged = walk(snapshot, { ...query, limit })
          const cut = items.length === 0 ? 0 : turn % items.length
          const turned = await snapshotOf([...items.slice(cut), ...items.slice(0, cut)].toReversed())
          expect(walk(turned, { ...query, limit: 100 })).toEqual(paged)
          expect(new Set(paged).size).toBe(paged.length)
          const all = walk(snapshot, { limit: 100, include_deleted: true })
          expect(all).toHaveLength(items.length)
          expect(all.filter((id) => paged.includes(id))).toEqual(paged)
        },
      ),
      { seed: 20_261_121, numRuns: 40 },
    )
  })

  it('neither skips nor repeats what stays while entries come and go between two pages', async () => {
    await fc.assert(
      fc.asyncProperty(listing, listing, fc.integer({ min: 1, max: 10 }), async (before, after, limit) => {
        const query = { limit, include_deleted: true }
        const [old, now] = [await snapshotOf(before), await snapshotOf(after)]
        const first = page(old, query)
        const { nextCursor } = first.metadata
        if (nextCursor === undefined) return
        const seen = [...ids(first), ...walk(now, query, nextCursor)]
        const were = walk(old, query)
        const stayed = walk(now, query).filter((id) => were.includes(id))
        expect(seen.filter((id) => stayed.includes(id))).toEqual(stayed)
      }),
      { seed: 20_261_122, numRuns: 40 },
    )
  })

  it('keeps at most one page per request in hand: 10,000 entries, the last page as cheap as the first', async () => {
    const items = Array.from({ length: 10_000 }, (_, index) =>
      entry(`org.many/s${String(index).padStart(5, '0')}`, '1.0.0'),
    )
    const snapshot = await snapshotOf(items)
    let cursor: string | undefined
    let pages = 0
    let largest = 0
    do {
      const text = renderPage(snapshot, { limit: 100, cursor })
      largest = Math.max(largest, text.length)
      cursor = (JSON.parse(text) as List).metadata.nextCursor
      pages += 1
    } while (cursor !== undefined)
    expect(pages).toBe(100)
    expect(largest).toBeLessThan(40_000)
  })
})

describe('the latest version', () => {
  it('is exactly one of every server', async () => {
    await fc.assert(
      fc.asyncProperty(listing, async (items) => {
        const snapshot = await snapshotOf(items)
        for (const versions of snapshot.byName.values())
          expect(versions.filter((version) => version.isLatest)).toHaveLength(1)
      }),
      { seed: 20_261_123, numRuns: 30 },
    )
  })
})
