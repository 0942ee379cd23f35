import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openSource, type Source } from '../../../src/registry/index.ts'
import { readDocument } from '../../../src/registry/read-document.ts'
import { sortInSlices } from '../../../src/registry/listing/sort-in-slices.ts'
import { createManualClock, createRecordingLog, createRecordingMetrics } from '../../support/ports.ts'

const ENTRIES = 1_500
let directory: string
let source: Source | undefined

beforeEach(() => {
  directory = mkdtempSync(path.join(tmpdir(), 'registry-large-'))
})
afterEach(async () => {
  await source?.close()
  source = undefined
  rmSync(directory, { recursive: true, force: true })
})

const registry = (edition: number): string =>
  JSON.stringify({
    servers: Array.from({ length: ENTRIES }, (_, index) => ({
      server: {
        name: `com.example/server-${index}`,
        description: `Edition ${edition}`,
        version: '1.0.0',
        _meta: { 'com.example/readme': 'x'.repeat(5_000) },
      },
    })),
  })

/** The most CPU time that this thread took, in milliseconds, before other work had its turn. */
async function longestTurn(work: () => Promise<unknown>): Promise<number> {
  const cpuMs = (): number => process.threadCpuUsage().user / 1000
  let last = cpuMs()
  let longest = 0
  let isRunning = true
  const look = (): void => {
    longest = Math.max(longest, cpuMs() - last)
    last = cpuMs()
    if (isRunning) setImmediate(look)
  }
  setImmediate(look)
  await work()
  isRunning = false
  look()
  return longest
}

test('a large file is read again without holding up what else is to be done', async () => {
  const file = path.join(directory, 'registry.json')
  writeFileSync(file, registry(0))
  const deps = {
    clock: createManualClock(),
    log: createRecordingLog(),
    metrics: createRecordingMetrics(),
    outbound: () => expect.unreachable('nothing is fetched'),
  }
  source = await openSource('large', { file }, deps)
  expect(source.state().snapshot?.entries).toHaveLength(ENTRIES)
  const turns: number[] = []
  let inOneGo = 0
  for (let edition = 1; edition <= 3; edition++) {
    const text = registry(edition)
    writeFileSync(file, text)
    // What validation and all that follows come to is more than parsing five times over.
    inOneGo = Math.max(
      inOneGo,
      await longestTurn(async () => void [1, 2, 3, 4, 5].map(() => JSON.parse(text) as unknown)),
    )
    turns.push(await longestTurn(() => source?.refresh() ?? Promise.resolve()))
    expect(source.state().snapshot?.entries[0]?.json).toContain(`Edition ${edition}`)
  }
  expect(Math.min(...turns)).toBeLessThan(inOneGo)
})

test('a large document is what it is when it is parsed in one go', async () => {
  const items = Array.from({ length: 3_000 }, (_, index) => ({
    name: `a/${index}`,
    text: 'ü\u2028"\\'.repeat(40),
    list: [1.5, -0, 1e300, null, true],
    ['__proto__']: { own: index },
  }))
  const text = JSON.stringify({ servers: items, metadata: { nextCursor: 'c' } })
  const { items: found, nextCursor } = await readDocument(new Uint8Array(Buffer.from(text)))
  expect(nextCursor).toBe('c')
  expect(JSON.stringify(found)).toBe(JSON.stringify((JSON.parse(text) as { servers: unknown[] }).servers))
})

test.each([
  ['what is not JSON', `${' '.repeat(600_000)}{`, 'not_json'],
  ['what has no servers', JSON.stringify({ other: 'x'.repeat(600_000) }), 'invalid'],
])('a large document is refused for %s', async (_what, text, problem) => {
  await expect(readDocument(new Uint8Array(Buffer.from(text)))).rejects.toMatchObject({ problem })
})

test('sorting in slices is sorting, and keeps the order of equals', async () => {
  const list = Array.from({ length: 7_321 }, (_, at) => ({ key: (at * 7_919) % 1_013, at }))
  const compare = (a: { key: number }, b: { key: number }): number => a.key - b.key
  expect(await sortInSlices(list, compare)).toEqual(list.toSorted(compare))
  expect(await sortInSlices([], compare)).toEqual([])
})
