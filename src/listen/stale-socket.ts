import { lstat, unlink } from 'node:fs/promises'
import { connect } from 'node:net'
import { Failure } from '../core/index.ts'

/** Makes `path` free to listen on: removes a stale socket; anything else at the path is a `config_error`. */
export async function clearStaleSocket(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined)
  if (found === undefined) return
  if (!found.isSocket()) throw new Failure('config_error', { detail: `${path} exists and is not a socket` })
  if (await isListening(path))
    throw new Failure('config_error', { detail: `another process listens on ${path} already` })
  await unlink(path)
}

function isListening(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    // ECONNREFUSED: a stale socket. After any other error (no permission, backlog full) it may be alive.
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code !== 'ECONNREFUSED'))
  })
}
