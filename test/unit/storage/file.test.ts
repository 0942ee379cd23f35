import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { createFileStore, type Store, STORE_FILE } from '../../../src/storage/index.ts'
import { createManualClock, createRecordingLog } from '../../support/ports.ts'
import { storeSuite } from '../../support/storage/suite.ts'
import { atOnce, bytes } from '../../support/storage/worlds.ts'

const directories: string[] = []
const stores: Store[] = []
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close()
  for (const directory of directories.splice(0)) await rm(directory, { recursive: true, force: true })
})

async function createWorld() {
  const root = await mkdtemp(path.join(os.tmpdir(), 'extauth-file-'))
  directories.push(root)
  const directory = path.join(root, 'new', 'state')
  const clock = createManualClock()
  const open = (): Store => {
    const store = createFileStore({ directory, clock, log: createRecordingLog() })
    stores.push(store)
    return store
  }
  return { directory, file: path.join(directory, STORE_FILE), clock, open }
}

storeSuite({
  name: 'the file store',
  async open() {
    const { clock, open } = await createWorld()
    const store = open()
    return {
      replicas: [store, store],
      advance(ms) {
        clock.advance(ms)
        return Promise.resolve()
      },
      close: () => store.close(),
    }
  },
})

describe('the file store', () => {
  it('keeps values, versions, times and collections over a restart', async () => {
    const { clock, open } = await createWorld()
    const store = open()
    await store.put('a', bytes('\u{1f511}'), 60_000)
    await store.put('b', bytes('1'), 1_000)
    await store.put('gone', bytes('1'), 60_000)
    await store.take('gone')
    const before = await store.get('a')
    const bound = { members: 2, bytes: 1_000 }
    await store.admit('c', 'used', bytes('1'), 60_000, bound)
    await store.touch('c', 'used', 60_000)
    await store.admit('c', 'unused', bytes('1'), 120_000, bound)
    await store.close()
    clock.advance(1_000)

    const again = open()
    expect(await again.get('a')).toEqual({ ...before, leftMs: 59_000 })
    expect(await again.get('b')).toBeUndefined()
    expect(await again.get('gone')).toBeUndefined()
    expect((await again.admit('c', 'third', bytes('1'), 60_000, bound)).evicted).toBe(1)
    expect(await again.get('unused'), 'a used member stays').toBeUndefined()
    await again.put('new', bytes('1'), 60_000)
    expect(Number((await again.get('new'))?.version)).toBeGreaterThan(Number(before?.version))
    expect(await again.compareAndSet('a', before?.version, bytes('2'), 60_000)).toBe(true)
  })

  it('writes one file that only its owner can read, before an operation resolves', async () => {
    const { directory, file, open } = await createWorld()
    const store = open()
    await atOnce(50, (index) => store.put(`key${index}`, bytes('value'), 60_000))
    const { entries } = JSON.parse(await readFile(file, 'utf8')) as { readonly entries: readonly object[] }
    expect(entries).toHaveLength(50)
    expect([(await stat(file)).mode & 0o777, (await stat(directory)).mode & 0o777]).toEqual([0o600, 0o700])
    expect((await readdir(directory)).filter((name) => name.startsWith(STORE_FILE))).toEqual([STORE_FILE])
  })

  it('belongs to one process at a time', async () => {
    const { open } = await createWorld()
    const first = open()
    await first.put('a', bytes('1'), 60_000)
    const second = open()
    await expect(second.get('a')).rejects.toMatchObject({
      kind: 'refused',
      cause: 'another process uses its directory',
    })
    expect(second.health()).toMatchObject({ isUp: false, detail: 'another process uses its directory' })
    await first.close()
    expect((await second.get('a'))?.value.toString()).toBe('1')
    expect(second.health()).toEqual({ isUp: true, kind: 'file', detail: undefined })
  })

  it.each(['{"version":1,"entries":[', '{"version":2,"entries":[],"members":[]}', ''])(
    'does not replace a file that it can not read: %s',
    async (content) => {
      const { file, open } = await createWorld()
      const first = open()
      await first.put('a', bytes('1'), 60_000)
      await first.close()
      await writeFile(file, content)
      const store = open()
      await expect(store.put('a', bytes('2'), 60_000)).rejects.toMatchObject({ kind: 'refused' })
      expect(store.health().detail).toBe('records.json is damaged or unreadable')
      expect(await readFile(file, 'utf8')).toBe(content)
      await rm(file)
      await store.put('a', bytes('2'), 60_000)
      expect(store.health().isUp).toBe(true)
    },
  )

  it('fails while it can not write, and recovers', async () => {
    const { file, open } = await createWorld()
    const store = open()
    await store.put('a', bytes('1'), 60_000)
    await rm(file)
    await mkdir(path.join(file, 'in the way'), { recursive: true })
    await expect(store.put('a', bytes('2'), 60_000)).rejects.toMatchObject({ kind: 'refused', code: 'EISDIR' })
    expect(store.health()).toMatchObject({ isUp: false, detail: 'records.json can not be written' })
    await rm(file, { recursive: true })
    await store.put('b', bytes('2'), 60_000)
    expect(store.health().isUp).toBe(true)
    expect(JSON.parse(await readFile(file, 'utf8')).entries).toHaveLength(2)
  })

  it('rejects a write that would exceed its limit', async () => {
    const { open } = await createWorld()
    const store = open()
    const large = Buffer.alloc(1_000_000)
    for (let index = 0; index < 8; index += 1) await store.put(`key${index}`, large, 60_000)
    await expect(store.put('one more', large, 60_000)).rejects.toThrow('512 printable')
    await expect(store.put('more', large, 60_000)).rejects.toMatchObject({ kind: 'overloaded' })
  })
})
