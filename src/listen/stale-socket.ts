import { lstat, unlink } from 'node:fs/promises'
import { connect } from 'node:net'
import { Failure } from '../core/index.ts'

/**
 * Makes `path` free to listen on: a socket that nobody listens on any more is removed; anything else that is in the way
 * is `config_error`.
 */
export async function clearStaleSocket(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined)
  if (found === undefined) return
  if (!found.isSocket()) throw new Failure('config_error', { detail: `${path} exists and is no socket` })
  if (await isListening(path)) throw new Failure('config_error', { detail: `somebody listens on ${path} already` })
  await unlink(path)
}

function isListening(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    // Refused: a left-over. Anything else (no permission, backlog full) may be alive.
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code !== 'ECONNREFUSED'))
  })
}
