import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { withLock } from '../../../src/files/index.ts'

let directory: string

beforeAll(async () => {
  directory = await mkdtemp(path.join(os.tmpdir(), 'extauth-lock-'))
})
afterAll(() => rm(directory, { recursive: true }))

it('one holder at a time, in order, and a failure releases it too', async () => {
  let inside = 0
  let most = 0
  const work = async (): Promise<void> => {
    most = Math.max(most, ++inside)
    await new Promise((resolve) => setTimeout(resolve, 5))
    inside--
    throw new Error('as it happens')
  }
  const all = await Promise.allSettled(Array.from({ length: 8 }, () => withLock(directory, 'a', 20_000, work)))
  expect(all.map(({ status }) => status)).toEqual(all.map(() => 'rejected'))
  expect(most).toBe(1)
})

it('waits no longer than it should, and not for another name', async () => {
  const holds = Promise.withResolvers<void>()
  const { promise, resolve } = Promise.withResolvers<void>()
  const held = withLock(directory, 'b', 20_000, () => {
    holds.resolve()
    return promise
  })
  await holds.promise
  await expect(withLock(directory, 'b', 100, () => Promise.resolve())).rejects.toMatchObject({ name: 'LockTimeout' })
  expect(await withLock(directory, 'c', 20_000, () => Promise.resolve('free'))).toBe('free')
  resolve()
  await held
})

it('of a process that is killed is free at once, and nothing is left behind', async () => {
  const module = JSON.stringify(path.join(import.meta.dirname, '../../../src/files/index.ts'))
  const script = `import { withLock } from ${module}
    await withLock(${JSON.stringify(directory)}, 'd', 1000, () => { console.log('held'); setInterval(() => {}, 1000); return new Promise(() => {}) })`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(child.stdout, 'data')
  await expect(withLock(directory, 'd', 200, () => Promise.resolve())).rejects.toMatchObject({ name: 'LockTimeout' })
  const taken = withLock(directory, 'd', 20_000, () => Promise.resolve('mine'))
  child.kill('SIGKILL')
  expect(await taken).toBe('mine')
  expect(await readdir(directory)).toEqual([])
}, 30_000)

it('lies in the folder, which only its owner may enter, however long its path is', async () => {
  for (const folder of [path.join(directory, 'own'), path.join(directory, 'x'.repeat(120))]) {
    const names = await withLock(folder, 'e', 1000, () => readdir(folder))
    expect(names).toEqual([expect.stringMatching(/^[0-9a-f]{12}\.lock$/)])
    expect((await stat(folder)).mode & 0o777).toBe(0o700)
    expect(await readdir(folder)).toEqual([])
    await rm(folder, { recursive: true })
  }
})
