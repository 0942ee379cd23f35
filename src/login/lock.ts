import { createHash } from 'node:crypto'
import { unlink } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import path from 'node:path'

/** Between two looks when nothing says that the lock is free, in milliseconds. */
const LOOK_MS = 100

/**
 * Runs `work` while no other process that uses `directory` runs any under the same name. Waits for its turn, at most
 * `patienceMs` or until `signal`; then rejects with `LockTimeout`. The lock is a socket that listens, which the system takes from a process
 * that ends, however it ends: nothing is left behind.
 */
export async function withLock<T>(
  directory: string,
  name: string,
  patienceMs: number,
  work: () => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const address = addressOf(directory, name)
  const endsAtMs = performance.now() + patienceMs
  let server = await take(address)
  while (server === undefined) {
    const leftMs = endsAtMs - performance.now()
    if (leftMs <= 0 || signal?.aborted === true) throw new LockTimeout()
    await released(address, leftMs, signal)
    server = await take(address)
  }
  const held = server
  try {
    return await work()
  } finally {
    await new Promise((resolve) => {
      held.close(resolve)
      for (const socket of waiters.get(held) ?? []) socket.destroy()
    })
  }
}

/** Somebody else has had it for too long. */
export class LockTimeout extends Error {
  constructor() {
    super('the lock was not released in time')
    this.name = 'LockTimeout'
  }
}

const waiters = new WeakMap<Server, Set<{ destroy(): unknown }>>()

/** Linux has names without a file, Windows has pipes; elsewhere it is a socket beside the data. */
function addressOf(directory: string, name: string): string {
  const user = process.getuid?.() ?? 0
  const digest = createHash('sha256')
    .update(`${user}\0${path.resolve(directory)}\0${name}`)
    .digest('hex')
    .slice(0, 32)
  if (process.platform === 'linux') return `\0extauth-${digest}`
  return process.platform === 'win32'
    ? `\\\\.\\pipe\\extauth-${digest}`
    : path.join(directory, `${digest.slice(0, 12)}.lock`)
}

function take(address: string): Promise<Server | undefined> {
  return new Promise((resolve, reject) => {
    const sockets = new Set<{ destroy(): unknown }>()
    // Who waits keeps a connection open, and sees it end.
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

/** Resolves when the one who has the lock lets go of it, and after `limitMs` in any case. */
function released(address: string, limitMs: number, signal: AbortSignal | undefined): Promise<void> {
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
      const freed = isLeftOver ? unlink(address).catch(() => undefined) : Promise.resolve()
      void freed.then(() => setTimeout(resolve, LOOK_MS * Math.random()))
    })
  })
}
