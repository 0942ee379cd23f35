import { statSync, watch, type BigIntStats, type FSWatcher, type Stats } from 'node:fs'
import { stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

/** Several events of one change (a swap makes a handful) become one look. */
const SETTLE_MS = 50
const DEFAULT_POLL_MS = 30_000
/** Each watched directory costs a kernel handle; what lies beyond the bound is found by the poll. */
const MAX_WATCHED = 256

export interface EventOptions {
  /** The directories to watch now, asked again after every event. One that is missing is awaited at its nearest parent. */
  readonly directories: () => readonly string[]
  /**
   * Something may have changed; whoever listens compares contents. Called soon after opening, too, and never twice at once.
   * `eventAtMs` is when the first event came (`performance.now`), undefined for a look that only the time brought about.
   */
  readonly onEvent: (eventAtMs: number | undefined) => Promise<void>
  /** Milliseconds between looks without an event, for file systems that tell nothing. Default 30 s. */
  readonly pollMs?: number
}

interface Existing {
  readonly path: string
  /** Another one when it is replaced. */
  readonly identity: string
}

/** The path and everything above it, nearest first. */
function* upwards(path: string): Generator<string> {
  for (let candidate = resolve(path); ; candidate = dirname(candidate)) {
    yield candidate
    if (dirname(candidate) === candidate) return
  }
}

const existing = (path: string, found: Stats | BigIntStats): Existing | undefined =>
  found.isDirectory() ? { path, identity: `${found.dev}:${found.ino}` } : undefined

/** The nearest directory that exists, from `path` upwards. Missing or unreadable: the parent will tell when that changes. */
async function nearest(path: string): Promise<Existing | undefined> {
  for (const candidate of upwards(path)) {
    const found = await stat(candidate).catch(() => undefined)
    const directory = found === undefined ? undefined : existing(candidate, found)
    if (directory !== undefined) return directory
  }
  return undefined
}

/** The same at once, for the moment of opening: what changes right after it must not be missed. */
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
 * Calls `onEvent` soon after anything happens in the directories, and once per poll. Watches directories and never
 * files: a watch on a file stays with the old inode when Kubernetes swaps `..data`. Never keeps the process alive.
 */
export function watchEvents(options: EventOptions): { close(): void } {
  const watchers = new Map<string, { identity: string; watcher: FSWatcher }>()
  let settle: NodeJS.Timeout | undefined
  let isBusy = false
  let eventAtMs: number | undefined
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
        // The directory itself went away: the next look arms whatever stands in its place.
        watcher.on('error', soon)
        watchers.set(path, { identity, watcher })
      } catch {
        // No handle left or no right to watch: the poll covers it.
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
    // There was an event meanwhile.
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
    eventAtMs ??= performance.now()
    lookSoon()
  }

  arm(options.directories().map(nearestNow))
  // What happened before this, and where linked directories really are.
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
