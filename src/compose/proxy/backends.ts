import { carriedConnections } from '../../listen/index.ts'
import { type Backend, type BackendOptions, ConnectionBudget, createBackend } from '../../net/index.ts'

/** Connections to all backends at a time, kept ones among them. */
const MOST_CONNECTIONS = 20_000

/** The backends of one configuration. */
export interface Backends {
  /** The connections to a backend; routes that mean the same one share them. */
  readonly open: (options: BackendOptions) => Backend
}

/** Bounds the connections to backends of a whole process: half of its file descriptors are for them, the others for clients. */
export const boundOfBackends = (): ConnectionBudget =>
  new ConnectionBudget(Math.min(MOST_CONNECTIONS, carriedConnections(2)))

/**
 * One pool of connections for each origin, TLS identity and set of timeouts, whichever routes lead there. Each is handed to
 * `keep` once, whose matter it is to close it; more than one `close` is one.
 */
export function createBackends(keep: (backend: Backend) => Backend, budget: ConnectionBudget): Backends {
  const opened = new Map<string, Backend>()
  return {
    open(options) {
      const given = Object.entries(options).filter(([, value]) => value !== undefined)
      const key = JSON.stringify(given.sort(([one], [other]) => (one < other ? -1 : 1)))
      const known = opened.get(key)
      if (known !== undefined) return known
      const backend = keep(closedOnce(createBackend(options, budget)))
      opened.set(key, backend)
      return backend
    },
  }
}

function closedOnce(backend: Backend): Backend {
  let closed: Promise<void> | undefined
  return { ...backend, close: () => (closed ??= backend.close()) }
}
