import { createHash, type Hash } from 'node:crypto'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { readBounded } from './bounded-read.ts'
import { watchEvents } from './events.ts'

const MAX_FILES = 5_000
const MAX_DEPTH = 8
/** A larger file counts by its size and time; hashing it at every look would cost more than it tells. */
const MAX_HASHED_BYTES = 16 * 1024 * 1024

export interface WatchDirectoryOptions {
  /** The names or contents of the files in the directory are others than before. */
  readonly onChange: () => void
  /** Milliseconds between looks without an event. Default 30 s. */
  readonly pollMs?: number
}

export interface WatchedDirectory {
  /** Looks at once; true when the content differs from before (`onChange` was called). */
  refresh(): Promise<boolean>
  close(): void
}

interface Seen {
  readonly directories: string[]
  files: number
}

function addFile(path: string, hash: Hash, size: number, modifiedMs: number): void {
  if (size > MAX_HASHED_BYTES) {
    hash.update(`large ${size} ${modifiedMs}`)
    return
  }
  try {
    hash.update(readBounded(path, MAX_HASHED_BYTES))
  } catch {
    hash.update('unreadable')
  }
}

function addDirectory(directory: string, depth: number, hash: Hash, seen: Seen): void {
  let names: string[]
  try {
    names = readdirSync(directory).toSorted()
  } catch {
    hash.update('missing')
    return
  }
  seen.directories.push(directory)
  for (const name of names) {
    // Kubernetes keeps the versions behind `..data`; the links to them in the directory itself are what counts.
    if (name.startsWith('..') || seen.files >= MAX_FILES) continue
    const path = join(directory, name)
    const stat = statSync(path, { throwIfNoEntry: false })
    if (stat === undefined) continue
    hash.update(`${name.length}:${name}`)
    if (stat.isDirectory()) {
      if (depth < MAX_DEPTH) addDirectory(path, depth + 1, hash, seen)
    } else if (stat.isFile()) {
      seen.files += 1
      hash.update(`${stat.size}:`)
      addFile(path, hash, stat.size, stat.mtimeMs)
    }
    hash.update(';')
  }
}

/** SHA-256 over names and contents (links followed, `..*` skipped), and the directories that were seen. */
function fingerprint(directory: string): { digest: string; directories: readonly string[] } {
  const hash = createHash('sha256')
  const seen: Seen = { directories: [], files: 0 }
  addDirectory(directory, 0, hash, seen)
  return { digest: hash.digest('base64url'), directories: seen.directories }
}

/**
 * Calls `onChange` when what the directory holds has changed: compared by content hash, so that a touch changes nothing
 * and a symlink swap (Kubernetes' `..data`) is seen. Subdirectories count, at most 8 deep and 5,000 files. A directory
 * that does not exist yet is awaited.
 */
export function watchDirectory(directory: string, options: WatchDirectoryOptions): WatchedDirectory {
  let last = fingerprint(directory)

  const refresh = () => {
    const now = fingerprint(directory)
    const isChanged = now.digest !== last.digest
    last = now
    if (isChanged) options.onChange()
    return Promise.resolve(isChanged)
  }

  const events = watchEvents({
    directories: () => [directory, ...last.directories],
    onEvent: async () => void (await refresh()),
    ...(options.pollMs === undefined ? {} : { pollMs: options.pollMs }),
  })
  return { refresh, close: () => events.close() }
}
