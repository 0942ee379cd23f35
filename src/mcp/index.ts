export { EventReader, OversizedEvent, type ServerEvent } from './events.ts'
export { headerText, namedIn, statelessHeaders, textOfHeader, ToolParameters } from './headers.ts'
export { removeParams, setField } from './json-fields.ts'
export { jsonRpcIdOf } from './json-rpc-id.ts'
export {
  DISCOVER,
  INITIALIZE,
  initialized,
  listTools,
  type McpAnswer,
  type McpRequest,
  type McpSession,
  readAnswer,
  serverOf,
  sessionHeaders,
} from './mcp-request.ts'
export {
  errorResponse,
  type Id,
  INVALID_REQUEST,
  isBatch,
  isId,
  isObject,
  keyOf,
  type Malformed,
  type Message,
  messageOf,
  type Notification,
  type Params,
  parseMessage,
  parseMessages,
  type Request,
  type Response,
  statelessCapabilitiesOf,
  STATELESS_CAPABILITIES,
  statelessVersionOf,
  CONNECTION_ERROR,
} from './message.ts'
export { SESSION_HEADER, sessionIdAt } from './session-header.ts'
export { type RpcSubject, rpcSubjectOf } from './rpc.ts'
export { HANDSHAKE_REVISION, REVISIONS, type Revision, revisionOf, STATELESS_REVISION } from './revisions.ts'
export { CONNECT_STATE, opensUrls, URL_ELICITATION_REQUIRED } from './url-elicitation.ts'
