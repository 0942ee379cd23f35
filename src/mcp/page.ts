// What the inspector's page knows of the protocol: `npm run generate` makes src/inspect/page/protocol.js of it.
export { EventReader } from './events.ts'
export { parameterHeaders, statelessHeaders } from './headers.ts'
export { HANDSHAKE_REVISION, STATELESS_REVISION } from './revisions.ts'
