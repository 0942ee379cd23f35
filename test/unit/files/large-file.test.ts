import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { watchLargeFile, type WatchedDirectory } from '../../../src/files/index.ts'

let directory: string
let path: string
let watched: WatchedDirectory | undefined

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'large-'))
  path = join(directory, 'a.json')
})
afterEach(() => {
  watched?.close()
  rmSync(directory, { recursive: true, force: true })
})

const watch = (file = path) => {
  const onChange = vi.fn<() => void>()
  watched = watchLargeFile(file, { onChange })
  return { onChange, watched }
}
const SOON = { timeout: 10_000, interval: 10 }

test('a change anywhere in a file of several chunks is reported, a touch is not', async () => {
  const content = Buffer.alloc(5 * 1024 * 1024 + 7, 'x')
  writeFileSync(path, content)
  const { onChange, watched: file } = watch()
  await file.ready
  expect(await file.refresh()).toBe(false)
  content[3 * 1024 * 1024] = 0x79
  writeFileSync(path, content)
  expect(await file.refresh()).toBe(true)
  content[content.length - 1] = 0x79
  writeFileSync(path, content)
  expect(await file.refresh()).toBe(true)
  utimesSync(path, new Date(), new Date())
  expect(await file.refresh()).toBe(false)
  expect(onChange).toHaveBeenCalledTimes(2)
})

test('a change just after the watch began is reported', async () => {
  writeFileSync(path, 'one')
  const { onChange } = watch()
  writeFileSync(path, 'two')
  await expect.poll(() => onChange.mock.calls.length, SOON).toBeGreaterThanOrEqual(1)
})

test('a file that is missing, created, replaced or deleted is reported each time', async () => {
  const { onChange, watched: file } = watch()
  await file.ready
  writeFileSync(path, 'one')
  await expect.poll(() => onChange.mock.calls.length, SOON).toBeGreaterThanOrEqual(1)
  writeFileSync(join(directory, 'next'), 'two')
  renameSync(join(directory, 'next'), path)
  await expect.poll(() => onChange.mock.calls.length, SOON).toBeGreaterThanOrEqual(2)
  rmSync(path)
  await expect.poll(() => onChange.mock.calls.length, SOON).toBeGreaterThanOrEqual(3)
})

test('a file behind a linked directory is followed where it really is', async () => {
  mkdirSync(join(directory, 'real'))
  symlinkSync('real', join(directory, 'link'))
  writeFileSync(join(directory, 'real', 'a.json'), 'one')
  const { onChange, watched: file } = watch(join(directory, 'link', 'a.json'))
  await file.ready
  writeFileSync(join(directory, 'real', 'a.json'), 'two')
  await expect.poll(() => onChange.mock.calls.length, SOON).toBeGreaterThanOrEqual(1)
})

test('nothing is reported after close', async () => {
  writeFileSync(path, 'one')
  const { onChange, watched: file } = watch()
  await file.ready
  writeFileSync(path, 'two')
  const look = file.refresh()
  file.close()
  await look
  expect(onChange).not.toHaveBeenCalled()
})
