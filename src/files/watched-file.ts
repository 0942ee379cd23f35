import { realpath } from 'node:fs/promises'
import { dirname } from 'node:path'
import { FileError, readBounded, type FileProblem } from './bounded-read.ts'
import { readBoundedAsync } from './bounded-read-async.ts'
import { watchEvents } from './events.ts'

export interface WatchedFileOptions {
  /** Larger files are a problem and are not loaded. */
  readonly maxBytes: number
  /** The file must really lie in this directory, after all symlinks. */
  readonly within?: string
  /** Milliseconds between looks without an event. Default 30 s. */
  readonly pollMs?: number
  /** Says whether a content may replace the one before; `false` keeps the old. */
  readonly accept?: (content: Buffer) => boolean
  /** The content is another than before. */
  readonly onChange?: () => void
  /** A look failed and the old content, if there is any, stays; told once per different problem. */
  readonly onProblem?: (problem: FileProblem | 'refused') => void
}

export interface WatchedFile {
  /** The last content that could be read and was accepted; undefined if there has never been one. */
  read(): Buffer | undefined
  /** 0 while there is none; goes up with each different content. */
  readonly version: number
  /** Looks at once; true when the content differs from before. */
  refresh(): Promise<boolean>
  close(): void
}

/** Where the file's directory really is: its own events say when a linked directory's files change. */
async function directoriesOf(path: string): Promise<readonly string[]> {
  const directory = dirname(path)
  const real = dirname(await realpath(path).catch(() => path))
  return real === directory ? [directory] : [directory, real]
}

/**
 * A file whose content is kept current: read at once, then again whenever its directory changes and at every poll, which
 * keeps nobody waiting. For files that are small; `watchLargeFile` is for the others.
 * Never throws: a file that is missing or can't be read keeps the content from before (decisions §6).
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

  // One look after the other, or an older one could bring back what a newer one has replaced.
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
      // A look that is under way may be the one that sees it.
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
