export { backendPathOf, isUnder, rewriteLocation, type PathMapping } from './backend-path.ts'
export { MAX_TOKEN_BYTES, parseBearer } from './bearer.ts'
export { challengeFor, renderChallenge, type Challenge, type ProtectedResource } from './challenge.ts'
export { JSON_RPC_CODE, mcpFailureBody, oauthFailureBody, registryFailureBody } from './failure-body.ts'
export {
  AMZ_CREDENTIALS,
  createHeaderPolicy,
  credentialsOf,
  HEARSAY,
  type OnDrop,
  type RequestHeaders,
} from './header-policy.ts'
export { networkOf } from './client-network.ts'
export { checkHostHeader, hasSeveralHosts } from './host-header.ts'
export { jsonRpcIdOf, type JsonRpcId } from './json-rpc-id.ts'
export { metadataPath, metadataUrl } from './metadata-url.ts'
export { checkPath, checkQuery, readAsBackends } from './path-check.ts'
export { withoutAmzParameters } from './query-policy.ts'
export { originFormOf, readRequestTarget, type RequestTarget } from './request-target.ts'
export { parseRetryAfter, retryAfterFor } from './retry-after.ts'
export {
  createResponsePolicy,
  holdsOne,
  isEventStream,
  type ParsedHeaders,
  type ResponseDropRule,
  type ResponseHead,
  whyDropped,
} from './response-policy.ts'
export { checkTokenInHost, checkTokenInTarget } from './token-in-target.ts'
export { JsonError, parseJsonObject, readJsonObject } from './strict-json.ts'
