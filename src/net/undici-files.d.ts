// Files of undici that are imported directly and have no types.
declare module 'undici/lib/core/connect.js' {
  import { buildConnector } from 'undici'
  export default buildConnector
}
declare module 'undici/lib/core/errors.js' {
  import { errors } from 'undici'
  export default errors
}
