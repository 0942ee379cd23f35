import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { openWatchedFile, type WatchedFile, type WatchedFileOptions } from '../../../src/files/index.ts'

let directory: string
let files: WatchedFile[]

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'files-'))
  files = []
})
afterEach(() => {
  for (const file of files) file.close()
  rmSync(directory, { recursive: true, force: true })
})

const open = (path: string, options: Partial<WatchedFileOptions> = {}): WatchedFile => {
  const file = openWatchedFile(path, { maxBytes: 1_000, ...options })
  files.push(file)
  return file
}
const textOf = (file: WatchedFile) => file.read()?.toString()
const eventually = (check: () => void) => vi.waitFor(check, { timeout: 5_000, interval: 10 })

test('the content is there at once and follows the file', async () => {
  const path = join(directory, 'a')
  writeFileSync(path, 'one')
  const file = open(path)
  expect([textOf(file), file.version]).toEqual(['one', 1])
  writeFileSync(path, 'two')
  await eventually(() => expect(textOf(file)).toBe('two'))
  renameSync(join(directory, 'a'), join(directory, 'b'))
  writeFileSync(join(directory, 'next'), 'three')
  renameSync(join(directory, 'next'), path)
  await eventually(() => expect(textOf(file)).toBe('three'))
  expect(file.version).toBeGreaterThanOrEqual(3)
})

test('a Kubernetes mount is followed when ..data is swapped', async () => {
  const mount = (version: string, value: string) => {
    mkdirSync(join(directory, version))
    writeFileSync(join(directory, version, 'token'), value)
    symlinkSync(version, join(directory, '..data_tmp'))
    renameSync(join(directory, '..data_tmp'), join(directory, '..data'))
  }
  mount('..2026_1', 'one')
  symlinkSync('..data/token', join(directory, 'token'))
  const file = open(join(directory, 'token'), { within: directory })
  expect(textOf(file)).toBe('one')
  for (const [version, value] of [
    ['..2026_2', 'two'],
    ['..2026_3', 'three'],
  ] as const) {
    mount(version, value)
    await eventually(() => expect(textOf(file)).toBe(value))
  }
  rmSync(join(directory, '..2026_1'), { recursive: true })
  expect(textOf(file)).toBe('three')
})

test('a file whose directories do not exist yet is found when it appears', async () => {
  const file = open(join(directory, 'later', 'name', 'key'))
  expect([file.read(), file.version]).toEqual([undefined, 0])
  mkdirSync(join(directory, 'later', 'name'), { recursive: true })
  writeFileSync(join(directory, 'later', 'name', 'key'), 'here')
  await eventually(() => expect(textOf(file)).toBe('here'))
})

test('a failed load keeps the previous content, and is reported once', async () => {
  const path = join(directory, 'a')
  writeFileSync(path, 'one')
  const problems: string[] = []
  const file = open(path, { accept: (content) => content.length > 0, onProblem: (problem) => problems.push(problem) })
  writeFileSync(path, 'x'.repeat(1_001))
  expect(await file.refresh()).toBe(false)
  expect(await file.refresh()).toBe(false)
  writeFileSync(path, '')
  expect(await file.refresh()).toBe(false)
  rmSync(path)
  expect(await file.refresh()).toBe(false)
  expect([textOf(file), file.version]).toEqual(['one', 1])
  expect(problems).toEqual(['too_large', 'refused', 'missing'])
})

test('refresh returns whether the content changed, and notifies listeners', async () => {
  const path = join(directory, 'a')
  writeFileSync(path, 'one')
  const onChange = vi.fn<() => void>()
  const file = open(path, { onChange })
  expect(await file.refresh()).toBe(false)
  writeFileSync(path, 'two')
  expect(await file.refresh()).toBe(true)
  expect(onChange).toHaveBeenCalledTimes(1)
})

test.each([
  ['a link out of the directory', () => symlinkSync('/etc/hostname', join(directory, 'in', 'a'))],
  ['a link to a sibling with the same beginning', () => symlinkSync('../in-secret/a', join(directory, 'in', 'a'))],
  ['a directory', () => mkdirSync(join(directory, 'in', 'a'))],
  ['a pipe', () => execFileSync('mkfifo', [join(directory, 'in', 'a')])],
  ['a link that goes in circles', () => symlinkSync('a', join(directory, 'in', 'a'))],
])('%s is refused', (_what, make) => {
  mkdirSync(join(directory, 'in'))
  mkdirSync(join(directory, 'in-secret'))
  writeFileSync(join(directory, 'in-secret', 'a'), 'secret')
  make()
  expect(open(join(directory, 'in', 'a'), { within: join(directory, 'in') }).read()).toBeUndefined()
})

test('after close nothing is looked at any more', async () => {
  const path = join(directory, 'a')
  writeFileSync(path, 'one')
  const onChange = vi.fn<() => void>()
  const file = open(path, { onChange, pollMs: 5 })
  file.close()
  writeFileSync(path, 'two')
  await new Promise((resolve) => setTimeout(resolve, 120))
  expect(onChange).not.toHaveBeenCalled()
  expect(textOf(file)).toBe('one')
})
