import { causeOf, type Log, type Route } from '../core/index.ts'
import { createLocalHandlers, type LocalHandlers } from './local-handlers.ts'
import { createMatch, type Match } from './match.ts'
import type { Runtime } from './options.ts'

/** The request router, built once per runtime. */
export interface Router {
  readonly match: Match
  readonly localHandlers: LocalHandlers
}

/** A runtime in use by a request; it is closed after the last release. */
export interface RuntimeReference {
  readonly router: Router
  release(): void
}

export interface Runtimes {
  /** The current runtime, kept open until `release`. */
  acquire(): RuntimeReference
  /** Replaces the runtime atomically (decisions §6): throws without any change if `runtime` is invalid. */
  swap(runtime: Runtime): void
  /** Closes all runtimes after their last request, and after `limitMs` at the latest. */
  close(limitMs: number): Promise<void>
}

/** One runtime from its first request to its last. */
interface Opened {
  acquire(): RuntimeReference
  /** Closes it once it is unused. */
  retire(): void
  /** Closes it now, even if in use. */
  force(): void
  readonly closed: Promise<void>
  readonly routes: readonly Route[]
}

/**
 * Keeps every runtime open while a request uses it. `onGone` is called with a route after the last request to one of
 * its name and type, once no runtime contains it.
 */
export function createRuntimes(first: Runtime, log: Log, onGone: (route: Route) => void): Runtimes {
  const retired = new Set<Opened>()
  let current = open(first, log)

  const forget = (closed: Opened): void => {
    retired.delete(closed)
    const idOf = ({ name, type }: Route): string => `${type} ${name}`
    const left = new Set<string>()
    for (const { routes } of [current, ...retired]) for (const route of routes) left.add(idOf(route))
    for (const route of closed.routes) if (!left.has(idOf(route))) onGone(route)
  }
  const retire = (opened: Opened): void => {
    retired.add(opened)
    void opened.closed.then(() => forget(opened))
    opened.retire()
  }

  return {
    acquire: () => current.acquire(),
    swap(runtime) {
      const next = open(runtime, log)
      const previous = current
      current = next
      retire(previous)
    },
    async close(limitMs) {
      retire(current)
      const timer = setTimeout(() => {
        for (const opened of retired) opened.force()
      }, limitMs)
      await Promise.all([...retired].map((opened) => opened.closed))
      clearTimeout(timer)
    },
  }
}

function open(runtime: Runtime, log: Log): Opened {
  const router = { match: createMatch(runtime.routes), localHandlers: createLocalHandlers(runtime.localHandlers) }
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  let users = 0
  let isRetired = false
  let isClosing = false
  const close = (): void => {
    if (isClosing) return
    isClosing = true
    runtime.close().then(resolve, (error: unknown) => {
      log.error({ cause: causeOf(error) }, 'closing the replaced configuration failed')
      resolve()
    })
  }
  const reference: RuntimeReference = {
    router,
    release() {
      users--
      if (isRetired && users === 0) close()
    },
  }
  return {
    closed,
    routes: runtime.routes,
    acquire() {
      users++
      return reference
    },
    retire() {
      isRetired = true
      if (users === 0) close()
    },
    force: close,
  }
}
