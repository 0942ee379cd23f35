import { realpath } from 'node:fs/promises'
import { dirname } from 'node:path'
import { FileError, readBounded, type FileProblem } from './bounded-read.ts'
import { readBoundedAsync } from './bounded-read-async.ts'
import { watchEvents } from './events.ts'

export interface WatchedFileOptions {
  /** Larger files are a problem and are not loaded. */
  readonly maxBytes: number
  /** The file must be in this directory, after resolving symlinks. */
  readonly within?: string
  /** Poll interval in milliseconds, besides events. Default 30 s. */
  readonly pollMs?: number
  /** Whether new content is valid; `false` keeps the old. */
  readonly accept?: (content: Buffer) => boolean
  /** The content has changed. */
  readonly onChange?: () => void
  /** A read failed and the old content, if any, stays. Called once per different problem. */
  readonly onProblem?: (problem: FileProblem | 'refused') => void
}

export interface WatchedFile {
  /** The last valid content; undefined if there has never been any. */
  read(): Buffer | undefined
  /** 0 without content; increases with each change. */
  readonly version: number
  /** Reads at once; true if the content has changed. */
  refresh(): Promise<boolean>
  close(): void
}

/** Resolved directory of the file: its events report changes in a linked directory. */
async function directoriesOf(path: string): Promise<readonly string[]> {
  const directory = dirname(path)
  const real = dirname(await realpath(path).catch(() => path))
  return real === directory ? [directory] : [directory, real]
}

/**
 * Keeps the content of a small file up to date: read at once, on events of its directory, and at every poll, without
 * blocking. For large files, use `watchLargeFile`. Never throws: a missing or unreadable file keeps the former content
 * (decisions §6).
 */
export function openWatchedFile(path: string, options: WatchedFileOptions): WatchedFile {
  let content: Buffer | undefined
  let version = 0
  let directories: readonly string[] = [dirname(path)]
  let isClosed = false
  let lastProblem: FileProblem | 'refused' | undefined

  const fail = (problem: FileProblem | 'refused') => {
    if (problem !== lastProblem) options.onProblem?.(problem)
    lastProblem = problem
    return false
  }

  const problemOf = (error: unknown): FileProblem => (error instanceof FileError ? error.problem : 'unreadable')

  const take = (found: Buffer): boolean => {
    if (content !== undefined && found.equals(content)) {
      lastProblem = undefined
      return false
    }
    if (options.accept !== undefined && !options.accept(found)) return fail('refused')
    lastProblem = undefined
    content = found
    version += 1
    return true
  }

  const look = async (): Promise<boolean> => {
    let isChanged: boolean
    try {
      directories = await directoriesOf(path)
      const found = await readBoundedAsync(path, options.maxBytes, options.within)
      if (isClosed) return false
      isChanged = take(found)
    } catch (error) {
      return isClosed ? false : fail(problemOf(error))
    }
    if (isChanged) options.onChange?.()
    return isChanged
  }

  // One read after the other, so that an older one cannot restore replaced content.
  let queue: Promise<unknown> = Promise.resolve()
  const refresh = (): Promise<boolean> => {
    const result = queue.then(look)
    queue = result.catch(() => undefined)
    return result
  }

  try {
    take(readBounded(path, options.maxBytes, options.within))
  } catch (error) {
    fail(problemOf(error))
  }
  const events = watchEvents({
    directories: () => directories,
    onEvent: async () => void (await refresh()),
    ...(options.pollMs === undefined ? {} : { pollMs: options.pollMs }),
  })

  return {
    read: () => content,
    get version() {
      return version
    },
    async refresh() {
      // A read in progress may detect the change.
      const before = version
      await refresh()
      return version !== before
    },
    close() {
      isClosed = true
      events.close()
    },
  }
}
