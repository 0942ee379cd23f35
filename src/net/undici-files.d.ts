// The files of undici that are imported by themselves; they have no types of their own.
declare module 'undici/lib/dispatcher/agent.js' {
  import { Agent } from 'undici'
  export default Agent
}
declare module 'undici/lib/dispatcher/pool.js' {
  import { Pool } from 'undici'
  export default Pool
}
declare module 'undici/lib/dispatcher/dispatcher.js' {
  import { Dispatcher } from 'undici'
  export default Dispatcher
}
declare module 'undici/lib/core/connect.js' {
  import { buildConnector } from 'undici'
  export default buildConnector
}
declare module 'undici/lib/core/errors.js' {
  import { errors } from 'undici'
  export default errors
}
declare module 'undici/lib/api/api-request.js' {
  import type { Dispatcher } from 'undici'
  const request: Dispatcher['request']
  export default request
}
