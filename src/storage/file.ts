import path from 'node:path'
import { z } from 'zod'
import { acquireLock, FileError, LockTimeout, readBoundedAsync, writePrivateFile } from '../files/index.ts'
import { createMemoryStore, type MemoryStoreOptions, type Snapshot } from './memory.ts'
import { type Store, StoreError } from './port.ts'

export interface FileStoreOptions extends Omit<MemoryStoreOptions, 'maxBytes'> {
  /** Absolute path; created with mode 0700. */
  readonly directory: string
}

export const STORE_FILE = 'records.json'

/** Bytes of keys and values: each write replaces the whole file. */
const MAX_BYTES = 8 * 1024 * 1024
/** The same in base64, with versions and times. */
const MAX_FILE_BYTES = 4 * MAX_BYTES
/** Time for an earlier process to release the directory. */
const LOCK_MS = 2_000

const FILE = z.object({
  version: z.literal(1),
  entries: z.array(z.object({ key: z.string(), value: z.base64(), version: z.int(), fence: z.int(), endMs: z.int() })),
  members: z.array(z.tuple([z.string(), z.string(), z.boolean()])),
})

/**
 * Creates a store that survives a restart of its process: a memory store that is written to one file of mode 0600
 * before an operation resolves. One process uses a directory at a time. Errors of the directory and the file are
 * `StoreError` `refused`, until the next operation tries again.
 */
export function createFileStore({ directory, ...options }: FileStoreOptions): Store {
  const memory = createMemoryStore({ ...options, maxBytes: MAX_BYTES })
  const file = path.join(directory, STORE_FILE)
  let release: (() => Promise<void>) | undefined
  let problem: string | undefined
  let isClosed = false

  const refuse = (what: string, error?: unknown): never => {
    problem = what
    const { code } = Object(error) as { code?: unknown }
    throw new StoreError('refused', { cause: what, ...(typeof code === 'string' ? { code } : {}) })
  }

  const open = async (): Promise<void> => {
    try {
      release = await acquireLock(directory, STORE_FILE, LOCK_MS)
    } catch (error) {
      refuse(
        error instanceof LockTimeout ? 'another process uses its directory' : 'its directory can not be used',
        error,
      )
    }
    try {
      memory.restore(await read(file))
      problem = undefined
    } catch (error) {
      await release?.()
      refuse(`${STORE_FILE} is damaged or unreadable`, error)
    }
  }
  let opening: Promise<void> | undefined
  const opened = (): Promise<void> => {
    if (isClosed) throw new StoreError('unavailable')
    opening ??= open().catch((error: unknown) => {
      opening = undefined
      throw error
    })
    return opening
  }

  let writing: Promise<void> = Promise.resolve()
  let next: Promise<void> | undefined
  /** Writes all changes so far; changes during a write share the next one. */
  const saved = (): Promise<void> => {
    next ??= writing.then(() => {
      next = undefined
      const written = write(file, memory.snapshot()).then(
        () => void (problem = undefined),
        (error: unknown) => refuse(`${STORE_FILE} can not be written`, error),
      )
      writing = written.catch(() => undefined)
      return written
    })
    return next
  }

  const reading = async <T>(work: () => Promise<T>): Promise<T> => {
    await opened()
    return work()
  }
  const changed = async <T>(work: () => Promise<T>, hasChanged: (result: T) => boolean = () => true): Promise<T> => {
    await opened()
    const result = await work()
    if (hasChanged(result)) await saved()
    return result
  }

  return {
    get: (key) => reading(() => memory.get(key)),
    put: (...args) => changed(() => memory.put(...args)),
    putIfAbsent: (...args) => changed(() => memory.putIfAbsent(...args), Boolean),
    take: (key) => changed(() => memory.take(key), Boolean),
    compareAndSet: (...args) => changed(() => memory.compareAndSet(...args), Boolean),
    delete: (...keys) => changed(() => memory.delete(...keys)),
    admit: (...args) => changed(() => memory.admit(...args)),
    touch: (...args) => changed(() => memory.touch(...args)),
    remove: (...args) => changed(() => memory.remove(...args)),
    members: (...args) => reading(() => memory.members(...args)),
    lock: (...args) => reading(() => memory.lock(...args)),
    async getOrLock(...args) {
      const found = await reading(() => memory.getOrLock(...args))
      if (found.kind !== 'lock') return found
      const { held } = found
      const finish = held.finish.bind(held)
      held.finish = (...value) => changed(() => finish(...value))
      return found
    },
    publish: (...args) => memory.publish(...args),
    subscribe: (...args) => memory.subscribe(...args),
    health() {
      const detail = problem ?? memory.health().detail
      return { isUp: detail === undefined, kind: 'file', detail }
    },
    async close() {
      isClosed = true
      await memory.close()
      await opening?.catch(() => undefined)
      await (next ?? writing).catch(() => undefined)
      await release?.()
    },
  }
}

/** The content of a file; a missing one is empty. Throws for other content. */
async function read(file: string): Promise<Snapshot> {
  let text: string
  try {
    text = (await readBoundedAsync(file, MAX_FILE_BYTES)).toString('utf8')
  } catch (error) {
    if (error instanceof FileError && error.problem === 'missing') return { entries: [], members: [] }
    throw error
  }
  const { entries, members } = FILE.parse(JSON.parse(text))
  return {
    entries: entries.map(({ key, value, ...entry }) => [
      key,
      { ...entry, bytes: Buffer.from(value, 'base64').toString('latin1') },
    ]),
    members,
  }
}

function write(file: string, { entries, members }: Snapshot): Promise<void> {
  const stored: z.infer<typeof FILE> = {
    version: 1,
    entries: entries.map(([key, { bytes, version, fence, endMs }]) => {
      return { key, value: Buffer.from(bytes, 'latin1').toString('base64'), version, fence, endMs }
    }),
    members: members.map(([collection, key, isTouched]) => [collection, key, isTouched]),
  }
  return writePrivateFile(file, JSON.stringify(stored))
}
