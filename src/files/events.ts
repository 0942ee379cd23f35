import { statSync, watch, type BigIntStats, type FSWatcher, type Stats } from 'node:fs'
import { stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { type MonotonicMs, monotonicNow } from '../core/index.ts'

/** Groups several events of one change (a swap causes a handful), in milliseconds. */
const SETTLE_MS = 50
const DEFAULT_POLL_MS = 30_000
/** Each watched directory costs a kernel handle; beyond this limit, polling detects changes. */
const MAX_WATCHED = 256

export interface EventOptions {
  /** The directories to watch, called after every event. For a missing one, its nearest parent is watched. */
  readonly directories: () => readonly string[]
  /**
   * Something may have changed; the listener compares contents. Also called soon after opening, and never
   * concurrently. `eventAtMs` is the time of the first event, undefined for a poll.
   */
  readonly onEvent: (eventAtMs: MonotonicMs | undefined) => Promise<void>
  /** Poll interval in milliseconds, for file systems without events. Default 30 s. */
  readonly pollMs?: number
}

interface Existing {
  readonly path: string
  /** Differs after a replacement. */
  readonly identity: string
}

/** The path and its parents, nearest first. */
function* upwards(path: string): Generator<string> {
  for (let candidate = resolve(path); ; candidate = dirname(candidate)) {
    yield candidate
    if (dirname(candidate) === candidate) return
  }
}

const existing = (path: string, found: Stats | BigIntStats): Existing | undefined =>
  found.isDirectory() ? { path, identity: `${found.dev}:${found.ino}` } : undefined

/** The nearest existing directory from `path` upwards. If it is missing or unreadable, its parent reports changes. */
async function nearest(path: string): Promise<Existing | undefined> {
  for (const candidate of upwards(path)) {
    const found = await stat(candidate).catch(() => undefined)
    const directory = found === undefined ? undefined : existing(candidate, found)
    if (directory !== undefined) return directory
  }
  return undefined
}

/** The synchronous version for opening, so that no change is missed. */
function nearestNow(path: string): Existing | undefined {
  for (const candidate of upwards(path)) {
    try {
      const directory = existing(candidate, statSync(candidate))
      if (directory !== undefined) return directory
    } catch {
      // As above.
    }
  }
  return undefined
}

/**
 * Calls `onEvent` soon after events in the directories, and once per poll. Watches directories, not files: a watch on
 * a file stays with the old inode when Kubernetes swaps `..data`. Does not keep the process alive.
 */
export function watchEvents(options: EventOptions): { close(): void } {
  const watchers = new Map<string, { identity: string; watcher: FSWatcher }>()
  let settle: NodeJS.Timeout | undefined
  let isBusy = false
  let eventAtMs: MonotonicMs | undefined
  let isClosed = false

  const arm = (found: readonly (Existing | undefined)[]): void => {
    if (isClosed) return
    const wanted = new Map<string, string>()
    for (const one of found) if (one !== undefined && wanted.size < MAX_WATCHED) wanted.set(one.path, one.identity)
    for (const [path, { identity, watcher }] of watchers) {
      if (wanted.get(path) === identity) continue
      watcher.close()
      watchers.delete(path)
    }
    for (const [path, identity] of wanted) {
      if (watchers.has(path)) continue
      try {
        const watcher = watch(path, { persistent: false }, soon)
        // The directory was removed: the next scan watches its replacement.
        watcher.on('error', soon)
        watchers.set(path, { identity, watcher })
      } catch {
        // No handle or no permission: polling covers it.
      }
    }
  }
  const armAgain = async (): Promise<void> => arm(await Promise.all(options.directories().map(nearest)))

  const look = async (): Promise<void> => {
    if (isClosed || isBusy) return
    isBusy = true
    const at = eventAtMs
    eventAtMs = undefined
    try {
      await armAgain()
      await options.onEvent(at)
      await armAgain()
    } finally {
      isBusy = false
    }
    // An event arrived meanwhile.
    if (eventAtMs !== undefined) lookSoon()
  }

  const lookSoon = (): void => {
    if (isClosed || settle !== undefined) return
    settle = setTimeout(() => {
      settle = undefined
      void look()
    }, SETTLE_MS)
    settle.unref()
  }

  function soon() {
    eventAtMs ??= monotonicNow()
    lookSoon()
  }

  arm(options.directories().map(nearestNow))
  // For earlier changes, and for the paths of linked directories.
  lookSoon()
  const poll = setInterval(() => void look(), options.pollMs ?? DEFAULT_POLL_MS)
  poll.unref()

  return {
    close() {
      isClosed = true
      clearInterval(poll)
      clearTimeout(settle)
      for (const { watcher } of watchers.values()) watcher.close()
      watchers.clear()
    },
  }
}
