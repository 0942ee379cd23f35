import { dirname } from 'node:path'
import { realpath } from 'node:fs/promises'
import { after, type MonotonicMs, monotonicNow } from '../core/index.ts'
import { watchEvents } from './events.ts'
import { fingerprintDirectory, fingerprintFile, type Fingerprint } from './fingerprint.ts'

/** An event this soon after the first scan may be for a change that the scan has seen, in milliseconds. */
const UNCERTAIN_MS = 200

export interface WatchDirectoryOptions {
  /** Names or contents of files in the directory have changed. */
  readonly onChange: () => void
  /** Poll interval in milliseconds, besides events. Default 30 s. */
  readonly pollMs?: number
}

export interface WatchedDirectory {
  /** Resolves after the first scan: later changes are detected. */
  readonly ready: Promise<void>
  /** Scans at once; true if the content has changed (`onChange` was called). */
  refresh(): Promise<boolean>
  close(): void
}

export interface WatchTreeOptions extends WatchDirectoryOptions {
  /** Only files of the directory itself with accepted names. Default: all files at any depth. */
  readonly onlyFiles?: (name: string) => boolean
}

/**
 * Calls `onChange` when the content of the directory changes, by content hash: a touch is ignored, and a symlink swap
 * (Kubernetes' `..data`) is detected. Includes subdirectories, up to 8 levels and 5,000 files. Waits for a missing
 * directory. Reads and hashes on other threads.
 */
export function watchDirectory(directory: string, options: WatchTreeOptions): WatchedDirectory {
  const look = (before?: Fingerprint) => fingerprintDirectory(directory, before, options.onlyFiles)
  return watchFingerprint(look, (last) => [directory, ...(last?.directories ?? [])], options)
}

/** The same for one file of any size, whose content is not kept. */
export function watchLargeFile(path: string, options: WatchDirectoryOptions): WatchedDirectory {
  const own = dirname(path)
  let directories = [own]
  const look = async (before?: Fingerprint) => {
    // The resolved path: its events report changes of files in a linked directory.
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

  // One scan after the other, so that an older one cannot overwrite a newer one.
  let queue: Promise<unknown> = Promise.resolve()
  const next = <T>(step: () => Promise<T>): Promise<T> => {
    const result = queue.then(step)
    queue = result
    return result
  }
  const ready = next(async () => {
    last = await look()
    uncertainUntil = after(monotonicNow(), UNCERTAIN_MS)
  })
  const refresh = (eventAtMs: MonotonicMs | undefined): Promise<boolean> =>
    next(async () => {
      const now = await look(last)
      // Content may have changed between the start of the watch and the first scan; an event reports it.
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
      // A scan in progress may detect the change.
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
