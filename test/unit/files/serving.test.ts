import fs, { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { openWatchedFile, watchDirectory, watchLargeFile } from '../../../src/files/index.ts'

type Functions = Record<string, (...args: unknown[]) => unknown>

let directory: string
const called: string[] = []
const originals = new Map<string, Functions[string]>()

/** From here on every call that waits for the file system is noted. */
function note(): void {
  const functions = fs as unknown as Functions
  for (const [name, original] of Object.entries(functions)) {
    if (!name.endsWith('Sync') || typeof original !== 'function') continue
    originals.set(name, original)
    functions[name] = (...args) => {
      called.push(name)
      return original(...args)
    }
  }
  syncBuiltinESMExports()
}
function restore(): void {
  for (const [name, original] of originals) (fs as unknown as Functions)[name] = original
  originals.clear()
  syncBuiltinESMExports()
}

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'serving-'))
  called.length = 0
})
afterEach(() => {
  restore()
  rmSync(directory, { recursive: true, force: true })
})

const path = (name: string) => join(directory, 'in', name)

test.each([
  [
    'a file',
    (onChange: () => void) => openWatchedFile(path('a'), { maxBytes: 1_000, within: directory, onChange, pollMs: 30 }),
  ],
  ['a large file', (onChange: () => void) => watchLargeFile(path('a'), { onChange, pollMs: 30 })],
  ['a directory', (onChange: () => void) => watchDirectory(directory, { onChange, pollMs: 30 })],
])('%s that is watched is looked at without waiting for the file system', async (_what, open) => {
  mkdirSync(join(directory, 'in'))
  for (const name of ['a', 'b', 'c']) writeFileSync(path(name), 'one')
  const onChange = vi.fn<() => void>()
  const watched = open(onChange)
  try {
    await watched.refresh()
    note()
    fs.writeFileSync(path('a'), 'proof that this is noted')
    expect(called).toContain('writeFileSync')
    await vi.waitUntil(() => onChange.mock.calls.length > 0, { timeout: 10_000, interval: 20 })
    for (let look = 0; look < 3; look++) await watched.refresh()
    expect(called.filter((name) => name !== 'writeFileSync')).toEqual([])
  } finally {
    watched.close()
  }
})
