import request from 'undici/lib/api/api-request.js'
import Dispatcher from 'undici/lib/dispatcher/dispatcher.js'

// The parts of undici that are used, each from its own file: the package's entry also loads fetch, WebSocket, caches, mocks
// and more, 80 files of 109. The package has no `exports`, so its files are as public as its entry, and its version is exact.
export { default as Agent } from 'undici/lib/dispatcher/agent.js'
export { default as Pool } from 'undici/lib/dispatcher/pool.js'
export { default as buildConnector } from 'undici/lib/core/connect.js'
export { default as errors } from 'undici/lib/core/errors.js'

// As the entry does it: dispatchers have no methods of their own but `dispatch`.
Object.assign(Dispatcher.prototype, { request })
