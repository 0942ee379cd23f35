import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { watchDirectory, type WatchedDirectory } from '../../../src/files/index.ts'

let directory: string
let watched: WatchedDirectory | undefined

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'directory-'))
})
afterEach(() => {
  watched?.close()
  rmSync(directory, { recursive: true, force: true })
})

const watch = (path: string, pollMs?: number) => {
  const onChange = vi.fn<() => void>()
  watched = watchDirectory(path, { onChange, ...(pollMs === undefined ? {} : { pollMs }) })
  return onChange
}
/** How often it was called, once it was called this often. */
const calls = async (onChange: ReturnType<typeof watch>, times: number) => {
  await vi.waitUntil(() => onChange.mock.calls.length >= times, { timeout: 5_000, interval: 10 })
  return onChange.mock.calls.length
}

test('a new, changed, renamed or removed file is reported each time', async () => {
  const onChange = watch(directory)
  writeFileSync(join(directory, 'a.yaml'), 'one')
  expect(await calls(onChange, 1)).toBe(1)
  writeFileSync(join(directory, 'a.yaml'), 'two')
  expect(await calls(onChange, 2)).toBe(2)
  renameSync(join(directory, 'a.yaml'), join(directory, 'b.yaml'))
  expect(await calls(onChange, 3)).toBe(3)
  rmSync(join(directory, 'b.yaml'))
  expect(await calls(onChange, 4)).toBe(4)
})

test('a subdirectory that comes later is watched like the others', async () => {
  const onChange = watch(directory)
  mkdirSync(join(directory, 'sub'))
  expect(await calls(onChange, 1)).toBe(1)
  writeFileSync(join(directory, 'sub', 'a.yaml'), 'one')
  expect(await calls(onChange, 2)).toBe(2)
})

test('a touch changes nothing', async () => {
  writeFileSync(join(directory, 'a.yaml'), 'one')
  const onChange = watch(directory)
  utimesSync(join(directory, 'a.yaml'), new Date(), new Date())
  expect(await watched?.refresh()).toBe(false)
  expect(onChange).not.toHaveBeenCalled()
})

test('a swap of ..data is one change', async () => {
  for (const version of ['..1', '..2']) {
    mkdirSync(join(directory, version))
    writeFileSync(join(directory, version, 'a.yaml'), `content ${version}`)
  }
  symlinkSync('..1', join(directory, '..data'))
  symlinkSync('..data/a.yaml', join(directory, 'a.yaml'))
  const onChange = watch(directory)
  symlinkSync('..2', join(directory, '..new'))
  renameSync(join(directory, '..new'), join(directory, '..data'))
  expect(await calls(onChange, 1)).toBe(1)
  expect(await watched?.refresh()).toBe(false)
})

test('a directory that does not exist yet is awaited, and one that is replaced is followed', async () => {
  const path = join(directory, 'later')
  const onChange = watch(path)
  mkdirSync(path)
  writeFileSync(join(path, 'a'), 'one')
  await vi.waitFor(() => expect(onChange).toHaveBeenCalled(), { timeout: 5_000, interval: 10 })
  await watched?.refresh()
  onChange.mockClear()
  mkdirSync(join(directory, 'next'))
  writeFileSync(join(directory, 'next', 'a'), 'two')
  renameSync(path, join(directory, 'old'))
  renameSync(join(directory, 'next'), path)
  await vi.waitFor(() => expect(onChange).toHaveBeenCalled(), { timeout: 5_000, interval: 10 })
  await watched?.refresh()
  onChange.mockClear()
  writeFileSync(join(path, 'a'), 'three')
  expect(await calls(onChange, 1)).toBe(1)
})
