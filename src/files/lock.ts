import { createHash } from 'node:crypto'
import { openSync } from 'node:fs'
import { mkdir, stat, unlink } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import path from 'node:path'
import { after, monotonicNow } from '../core/index.ts'

/** Poll interval in milliseconds when no event signals the release. */
const LOOK_MS = 100

/**
 * Runs `work` while holding a lock of this name in `directory`, across processes. Waits at most `patienceMs` or until
 * `signal`, then rejects with `LockTimeout`.
 */
export async function withLock<T>(
  directory: string,
  name: string,
  patienceMs: number,
  work: () => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const release = await acquireLock(directory, name, patienceMs, signal)
  try {
    return await work()
  } finally {
    await release()
  }
}

/**
 * Takes a lock of this name in `directory` and returns the function that releases it. Waits like `withLock`. The lock
 * is a listening socket in `directory`, which the system closes when its process ends in any way; the next process
 * removes the file.
 */
export async function acquireLock(
  directory: string,
  name: string,
  patienceMs: number,
  signal?: AbortSignal,
): Promise<() => Promise<void>> {
  const address = await addressOf(directory, name)
  const endsAtMs = after(monotonicNow(), patienceMs)
  let server = await take(address)
  while (server === undefined) {
    const leftMs = endsAtMs - monotonicNow()
    if (leftMs <= 0 || signal?.aborted === true) throw new LockTimeout()
    await released(address, leftMs, signal)
    server = await take(address)
  }
  const held = server
  return async () => {
    await new Promise((resolve) => {
      held.close(resolve)
      for (const socket of waiters.get(held) ?? []) socket.destroy()
    })
  }
}

/** Another process held the lock for too long. */
export class LockTimeout extends Error {
  constructor() {
    super('the lock was not released in time')
    this.name = 'LockTimeout'
  }
}

const waiters = new WeakMap<Server, Set<{ destroy(): unknown }>>()

/** Maximum length of a socket path in bytes; macOS has the shortest. */
const MAX_PATH = 100

/** In the user's private folder, so that no other user can take the lock; Windows uses pipes. */
async function addressOf(directory: string, name: string): Promise<string> {
  const digest = createHash('sha256').update(name).digest('hex').slice(0, 12)
  if (process.platform === 'win32') {
    const user = createHash('sha256').update(path.resolve(directory)).digest('hex').slice(0, 32)
    return `\\\\.\\pipe\\extauth-${user}-${digest}`
  }
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const address = path.resolve(directory, `${digest}.lock`)
  if (Buffer.byteLength(address) <= MAX_PATH || process.platform !== 'linux') return address
  const folder = folders.get(directory) ?? openSync(directory, 'r')
  folders.set(directory, folder)
  return `/proc/self/fd/${folder}/${digest}.lock`
}

/** Open for the lifetime of the process: a socket path that is too long is shorter relative to it. */
const folders = new Map<string, number>()

function take(address: string): Promise<Server | undefined> {
  return new Promise((resolve, reject) => {
    const sockets = new Set<{ destroy(): unknown }>()
    // A waiting process keeps a connection open, which closes with the lock.
    const server = createServer((socket) => {
      sockets.add(socket)
      socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket))
    })
    waiters.set(server, sockets)
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(undefined)
      else reject(error)
    })
    server.listen(address, () => resolve(server))
  })
}

/** Resolves when the holder releases the lock, and after `limitMs` at the latest. */
async function released(address: string, limitMs: number, signal: AbortSignal | undefined): Promise<void> {
  const found = await inodeOf(address)
  return new Promise((resolve) => {
    const socket = connect(address)
    const timer = setTimeout(() => socket.destroy(), limitMs)
    const onAbort = (): void => void socket.destroy()
    signal?.addEventListener('abort', onAbort, { once: true })
    let isLeftOver = false
    socket.on('error', (error: NodeJS.ErrnoException) => {
      isLeftOver = error.code === 'ECONNREFUSED' && path.isAbsolute(address)
    })
    socket.once('close', () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
      const freed = isLeftOver ? clear(address, found) : Promise.resolve()
      void freed.then(() => setTimeout(resolve, LOOK_MS * Math.random()))
    })
  })
}

const inodeOf = async (file: string): Promise<number | undefined> => (await stat(file).catch(() => undefined))?.ino

/** Removes the socket of a killed process, unless another process has replaced it meanwhile. */
async function clear(address: string, inode: number | undefined): Promise<void> {
  if (inode !== undefined && (await inodeOf(address)) === inode) await unlink(address).catch(() => undefined)
}
