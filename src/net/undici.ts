import { createRequire } from 'node:module'
import type { Agent as AgentClass, Dispatcher, Pool as PoolClass } from 'undici'

const load = createRequire(import.meta.url)

// The used parts of undici, each from its own file: the entry also loads fetch, WebSocket, caches and mocks, 80 files
// of 109. The package has no `exports`, so its files are as public as its entry, and its version is pinned.
export { default as buildConnector } from 'undici/lib/core/connect.js'
export { default as errors } from 'undici/lib/core/errors.js'

/** Sends requests over connections of undici. */
interface Undici {
  readonly Agent: typeof AgentClass
  readonly Pool: typeof PoolClass
}

let loaded: Undici | undefined

/** Loaded on first use (docs/adr/0305): a proxy without HTTP/2 backends and remote services does not need it. */
export const undici = (): Undici => (loaded ??= loadUndici())

/** Whether undici is loaded. */
export const isUndiciLoaded = (): boolean => loaded !== undefined

function loadUndici(): Undici {
  const dispatcher = load('undici/lib/dispatcher/dispatcher.js') as typeof Dispatcher
  // As in undici's entry: dispatchers themselves have only `dispatch`.
  Object.assign(dispatcher.prototype, { request: load('undici/lib/api/api-request.js') as Dispatcher['request'] })
  return {
    Agent: load('undici/lib/dispatcher/agent.js') as typeof AgentClass,
    Pool: load('undici/lib/dispatcher/pool.js') as typeof PoolClass,
  }
}
