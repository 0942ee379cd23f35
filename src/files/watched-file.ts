import { realpathSync } from 'node:fs'
import { dirname } from 'node:path'
import { FileError, readBounded, type FileProblem } from './bounded-read.ts'
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
function directoriesOf(path: string): readonly string[] {
  const directory = dirname(path)
  try {
    const real = dirname(realpathSync(path))
    return real === directory ? [directory] : [directory, real]
  } catch {
    return [directory]
  }
}

/**
 * A file whose content is kept current: read at once, then again whenever its directory changes and at every poll.
 * Never throws: a file that is missing or can't be read keeps the content from before (decisions §6).
 */
export function openWatchedFile(path: string, options: WatchedFileOptions): WatchedFile {
  let content: Buffer | undefined
  let version = 0
  let lastProblem: FileProblem | 'refused' | undefined

  const fail = (problem: FileProblem | 'refused') => {
    if (problem !== lastProblem) options.onProblem?.(problem)
    lastProblem = problem
    return false
  }

  const look = (): boolean => {
    let found: Buffer
    try {
      found = readBounded(path, options.maxBytes, options.within)
    } catch (error) {
      return fail(error instanceof FileError ? error.problem : 'unreadable')
    }
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

  const refresh = () => {
    const isChanged = look()
    if (isChanged) options.onChange?.()
    return Promise.resolve(isChanged)
  }

  look()
  const events = watchEvents({
    directories: () => directoriesOf(path),
    onEvent: async () => void (await refresh()),
    ...(options.pollMs === undefined ? {} : { pollMs: options.pollMs }),
  })

  return {
    read: () => content,
    get version() {
      return version
    },
    refresh,
    close: () => events.close(),
  }
}
