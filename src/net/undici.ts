import { createRequire } from 'node:module'
import type { Agent as AgentClass, Dispatcher, Pool as PoolClass } from 'undici'

const load = createRequire(import.meta.url)

// The parts of undici that are used, each from its own file: the package's entry also loads fetch, WebSocket, caches, mocks
// and more, 80 files of 109. The package has no `exports`, so its files are as public as its entry, and its version is exact.
export { default as buildConnector } from 'undici/lib/core/connect.js'
export { default as errors } from 'undici/lib/core/errors.js'

/** What sends requests over connections of undici. */
interface Undici {
  readonly Agent: typeof AgentClass
  readonly Pool: typeof PoolClass
}

let loaded: Undici | undefined

/**
 * Loaded when something is first sent that way (docs/adr/0305): a proxy whose callers and backends need nobody else has no
 * use for it.
 */
export const undici = (): Undici => (loaded ??= loadUndici())

/** Whether anything has been sent that way, or stands ready to be. */
export const isUndiciLoaded = (): boolean => loaded !== undefined

function loadUndici(): Undici {
  const dispatcher = load('undici/lib/dispatcher/dispatcher.js') as typeof Dispatcher
  // As the entry does it: dispatchers have no methods of their own but `dispatch`.
  Object.assign(dispatcher.prototype, { request: load('undici/lib/api/api-request.js') as Dispatcher['request'] })
  return {
    Agent: load('undici/lib/dispatcher/agent.js') as typeof AgentClass,
    Pool: load('undici/lib/dispatcher/pool.js') as typeof PoolClass,
  }
}
