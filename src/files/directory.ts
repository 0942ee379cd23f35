import { dirname } from 'node:path'
import { realpath } from 'node:fs/promises'
import { watchEvents } from './events.ts'
import { fingerprintDirectory, fingerprintFile, type Fingerprint } from './fingerprint.ts'

/** An event so soon after the first look was over may be of a change that this look has seen, in milliseconds. */
const UNCERTAIN_MS = 200

export interface WatchDirectoryOptions {
  /** The names or contents of the files in the directory are others than before. */
  readonly onChange: () => void
  /** Milliseconds between looks without an event. Default 30 s. */
  readonly pollMs?: number
}

export interface WatchedDirectory {
  /** What there was when the watch began is known: whatever is read from here on is read again when it changes. */
  readonly ready: Promise<void>
  /** Looks at once; true when the content differs from before (`onChange` was called). */
  refresh(): Promise<boolean>
  close(): void
}

export interface WatchTreeOptions extends WatchDirectoryOptions {
  /** Only files of the directory itself whose names pass count, and no subdirectory. Default: all files at any depth. */
  readonly onlyFiles?: (name: string) => boolean
}

/**
 * Calls `onChange` when what the directory holds has changed: compared by content hash, so that a touch changes nothing
 * and a symlink swap (Kubernetes' `..data`) is seen. Subdirectories count, at most 8 deep and 5,000 files. A directory
 * that does not exist yet is awaited. Nothing is read or hashed where requests are served.
 */
export function watchDirectory(directory: string, options: WatchTreeOptions): WatchedDirectory {
  const look = (before?: Fingerprint) => fingerprintDirectory(directory, before, options.onlyFiles)
  return watchFingerprint(look, (last) => [directory, ...(last?.directories ?? [])], options)
}

/** The same for one file, however large, whose content is not kept. */
export function watchLargeFile(path: string, options: WatchDirectoryOptions): WatchedDirectory {
  const own = dirname(path)
  let directories = [own]
  const look = async (before?: Fingerprint) => {
    // Where it really is: the events there say when the files of a linked directory change.
    const real = await realpath(path).catch(() => path)
    directories = dirname(real) === own ? [own] : [own, dirname(real)]
    return fingerprintFile(path, before)
  }
  return watchFingerprint(look, () => directories, options)
}

function watchFingerprint(
  look: (before?: Fingerprint) => Promise<Fingerprint>,
  directories: (last: Fingerprint | undefined) => readonly string[],
  { onChange, pollMs }: WatchDirectoryOptions,
): WatchedDirectory {
  let last: Fingerprint | undefined
  let uncertainUntil = Infinity
  let isClosed = false

  // One look after the other, or an older one could overwrite a newer one.
  let queue: Promise<unknown> = Promise.resolve()
  const next = <T>(step: () => Promise<T>): Promise<T> => {
    const result = queue.then(step)
    queue = result
    return result
  }
  const ready = next(async () => {
    last = await look()
    uncertainUntil = performance.now() + UNCERTAIN_MS
  })
  const refresh = (eventAtMs: number | undefined): Promise<boolean> =>
    next(async () => {
      const now = await look(last)
      // What was there when the watch began may not be what the first look saw: then an event tells of a change.
      const isChanged = now.digest !== last?.digest || (eventAtMs !== undefined && eventAtMs < uncertainUntil)
      last = now
      if (isChanged) uncertainUntil = 0
      if (isChanged && !isClosed) onChange()
      return isChanged
    })

  const events = watchEvents({
    directories: () => directories(last),
    onEvent: async (eventAtMs) => void (await refresh(eventAtMs)),
    ...(pollMs === undefined ? {} : { pollMs }),
  })
  return {
    ready,
    async refresh() {
      // A look that is under way may be the one that sees it.
      const before = last
      const isChanged = await refresh(undefined)
      return before === undefined ? isChanged : before.digest !== last?.digest
    },
    close() {
      isClosed = true
      events.close()
    },
  }
}
