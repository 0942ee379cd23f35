import { statSync, watch, type FSWatcher } from 'node:fs'
import { dirname, resolve } from 'node:path'

/** Several events of one change (a swap makes a handful) become one look. */
const SETTLE_MS = 50
const DEFAULT_POLL_MS = 30_000
/** Each watched directory costs a kernel handle; what lies beyond the bound is found by the poll. */
const MAX_WATCHED = 256

export interface EventOptions {
  /** The directories to watch now, asked again after every event. One that is missing is awaited at its nearest parent. */
  readonly directories: () => readonly string[]
  /** Something may have changed; whoever listens compares contents. Called never twice at once. */
  readonly onEvent: () => Promise<void>
  /** Milliseconds between looks without an event, for file systems that tell nothing. Default 30 s. */
  readonly pollMs?: number
}

/** The nearest directory that exists, from `path` upwards, with an identity that changes when it is replaced. */
function nearest(path: string): { path: string; identity: string } | undefined {
  for (let candidate = resolve(path); ; candidate = dirname(candidate)) {
    try {
      const stat = statSync(candidate)
      if (stat.isDirectory()) return { path: candidate, identity: `${stat.dev}:${stat.ino}` }
    } catch {
      // Missing or unreadable: the parent will tell when that changes.
    }
    if (dirname(candidate) === candidate) return undefined
  }
}

/**
 * Calls `onEvent` soon after anything happens in the directories, and once per poll. Watches directories and never
 * files: a watch on a file stays with the old inode when Kubernetes swaps `..data`. Never keeps the process alive.
 */
export function watchEvents(options: EventOptions): { close(): void } {
  const watchers = new Map<string, { identity: string; watcher: FSWatcher }>()
  let settle: NodeJS.Timeout | undefined
  let isBusy = false
  let isDirty = false
  let isClosed = false

  const arm = () => {
    if (isClosed) return
    const wanted = new Map<string, string>()
    for (const directory of options.directories()) {
      const found = nearest(directory)
      if (found !== undefined && wanted.size < MAX_WATCHED) wanted.set(found.path, found.identity)
    }
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

  const look = async () => {
    if (isClosed) return
    if (isBusy) {
      isDirty = true
      return
    }
    isBusy = true
    try {
      do {
        isDirty = false
        arm()
        await options.onEvent()
      } while (isDirty)
    } finally {
      isBusy = false
    }
    arm()
  }

  function soon() {
    if (isClosed || settle !== undefined) return
    settle = setTimeout(() => {
      settle = undefined
      void look()
    }, SETTLE_MS)
    settle.unref()
  }

  arm()
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
