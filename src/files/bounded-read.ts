import { closeSync, constants, fstatSync, openSync, readSync, realpathSync } from 'node:fs'
import { sep } from 'node:path'

export type FileProblem = 'missing' | 'unreadable' | 'not_a_file' | 'too_large' | 'outside'

/** Why a file is unreadable, without the system's message. */
export class FileError extends Error {
  readonly problem: FileProblem

  constructor(problem: FileProblem, cause?: unknown) {
    super(problem, { cause })
    this.name = 'FileError'
    this.problem = problem
  }
}

const isMissing = (error: unknown) =>
  error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')

/** Converts an error of the system. */
export const problemOf = (error: unknown) => new FileError(isMissing(error) ? 'missing' : 'unreadable', error)

/** The problem of a file as a phrase: "is missing", "is too large". */
export const fileProblem = (error: unknown): string =>
  error instanceof FileError ? error.problem.replaceAll('_', ' ') : 'unreadable'

/** Whether a resolved path is within a resolved directory. */
export const isBelow = (real: string, root: string): boolean => real.startsWith(root.endsWith(sep) ? root : root + sep)

/**
 * Reads a regular file of at most `maxBytes` bytes. With `within`, the file must be in that directory after resolving
 * symlinks (Kubernetes' `..data` is, a link to `/etc` is not). Rejects pipes and devices without blocking. Throws
 * `FileError`.
 */
export function readBounded(path: string, maxBytes: number, within?: string): Buffer {
  let descriptor: number
  try {
    let real = path
    if (within !== undefined) {
      const root = realpathSync(within)
      real = realpathSync(path)
      if (!isBelow(real, root)) throw new FileError('outside')
    }
    // The resolved path has no links, so O_NOFOLLOW rejects one created since.
    const noFollow = within === undefined ? 0 : constants.O_NOFOLLOW
    descriptor = openSync(real, constants.O_RDONLY | constants.O_NONBLOCK | noFollow)
  } catch (error) {
    throw error instanceof FileError ? error : problemOf(error)
  }
  try {
    const stat = fstatSync(descriptor)
    if (!stat.isFile()) throw new FileError('not_a_file')
    if (stat.size > maxBytes) throw new FileError('too_large')
    // One byte more than its size: the file may grow while it is read.
    const buffer = Buffer.alloc(Math.max(stat.size, Math.min(maxBytes, 4096)) + 1)
    let length = 0
    for (let read = -1; read !== 0 && length < buffer.length; length += read) {
      read = readSync(descriptor, buffer, length, buffer.length - length, null)
    }
    // It grew: a partial read is useless, and the next one is complete.
    if (length === buffer.length) throw new FileError(length > maxBytes ? 'too_large' : 'unreadable')
    return Buffer.from(buffer.subarray(0, length))
  } catch (error) {
    throw error instanceof FileError ? error : problemOf(error)
  } finally {
    closeSync(descriptor)
  }
}
