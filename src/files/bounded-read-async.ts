import { constants, type Stats } from 'node:fs'
import { open, realpath, type FileHandle } from 'node:fs/promises'
import { FileError, isBelow, problemOf } from './bounded-read.ts'

/** Like `readBounded`, on other threads. Rejects with `FileError`. */
export async function readBoundedAsync(path: string, maxBytes: number, within?: string): Promise<Buffer> {
  let handle: FileHandle | undefined
  try {
    handle = await openBounded(path, within)
    const { size } = await statOf(handle, maxBytes)
    // One byte more than its size: the file may grow while it is read.
    const buffer = Buffer.allocUnsafeSlow(Math.max(size, Math.min(maxBytes, 4096)) + 1)
    let length = 0
    for (let read = -1; read !== 0 && length < buffer.length; length += read) {
      read = (await handle.read(buffer, length, buffer.length - length, null)).bytesRead
    }
    // It grew: a partial read is useless, and the next one is complete.
    if (length === buffer.length) throw new FileError(length > maxBytes ? 'too_large' : 'unreadable')
    return buffer.subarray(0, length)
  } catch (error) {
    throw error instanceof FileError ? error : problemOf(error)
  } finally {
    await handle?.close()
  }
}

/** A regular file of at most `maxBytes`; anything else is a `FileError`. */
async function statOf(handle: FileHandle, maxBytes: number): Promise<Stats> {
  const stat = await handle.stat()
  if (!stat.isFile()) throw new FileError('not_a_file')
  if (stat.size > maxBytes) throw new FileError('too_large')
  return stat
}

async function openBounded(path: string, within: string | undefined): Promise<FileHandle> {
  if (within === undefined) return open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const real = await realpath(path)
  if (!isBelow(real, await realpath(within))) throw new FileError('outside')
  // The resolved path has no links, so O_NOFOLLOW rejects one created since.
  return open(real, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
}
