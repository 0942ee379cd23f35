// The files of undici that are imported by themselves; they have no types of their own.
declare module 'undici/lib/core/connect.js' {
  import { buildConnector } from 'undici'
  export default buildConnector
}
declare module 'undici/lib/core/errors.js' {
  import { errors } from 'undici'
  export default errors
}
