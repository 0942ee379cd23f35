import { causeOf, type Log } from '../core/index.ts'
import { renderDocuments } from './documents.ts'
import { createMatch, type Match } from './match.ts'
import type { Runtime } from './options.ts'

/** A runtime in use: what is worked out from it once, and how many requests still need it. */
export interface Surface {
  readonly match: Match
  readonly documents: ReadonlyMap<string, Buffer>
}

export interface Lease {
  readonly surface: Surface
  release(): void
}

export interface Runtimes {
  /** The current runtime, held until `release`. */
  lease(): Lease
  /** Whole old or whole new (decisions §6): throws before anything has changed when `runtime` can't be used. */
  swap(runtime: Runtime): void
  /** Closes the current runtime when its last request is done; resolves when all that were ever in use are closed. */
  close(): Promise<void>
}

/** Keeps every runtime alive as long as a request uses it. */
export function createRuntimes(first: Runtime, log: Log): Runtimes {
  const closing = new Set<Promise<void>>()

  const open = (runtime: Runtime) => {
    const surface = { match: createMatch(runtime.routes), documents: renderDocuments(runtime.documents) }
    let users = 0
    let isRetired = false
    const finished = Promise.withResolvers<void>()
    const closeIfUnused = (): void => {
      if (!isRetired || users > 0) return
      runtime.close().then(finished.resolve, (error: unknown) => {
        log.error({ cause: causeOf(error) }, 'a replaced configuration did not close cleanly')
        finished.resolve()
      })
    }
    const lease: Lease = {
      surface,
      release() {
        users--
        closeIfUnused()
      },
    }
    return {
      lease: () => {
        users++
        return lease
      },
      retire: () => {
        if (isRetired) return
        isRetired = true
        closing.add(finished.promise)
        void finished.promise.then(() => closing.delete(finished.promise))
        closeIfUnused()
      },
    }
  }

  let current = open(first)
  return {
    lease: () => current.lease(),
    swap(runtime) {
      const next = open(runtime)
      const previous = current
      current = next
      previous.retire()
    },
    async close() {
      current.retire()
      await Promise.all(closing)
    },
  }
}
