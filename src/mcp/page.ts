// Protocol code of the inspector's page: `npm run generate` bundles it as src/inspect/page/protocol.js.
export { EventReader } from './events.ts'
export { parameterHeaders, statelessHeaders } from './headers.ts'
export { CONNECT_STATE } from './url-elicitation.ts'
export { HANDSHAKE_REVISION, STATELESS_REVISION } from './revisions.ts'
