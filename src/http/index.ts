export { backendPathOf, isUnder, type PathMapping, rewriteLocation } from './backend-path.ts'
export { otherScheme, parseBearer, presentedToken } from './bearer.ts'
export { challengeFor, renderChallenge, stepUpChallengeFor } from './challenge.ts'
export { networkOf } from './client-network.ts'
export { mcpFailureBody, oauthFailureBody, registryFailureBody } from './failure-body.ts'
export { AMZ_CREDENTIALS, createHeaderPolicy, UNTRUSTED } from './header-policy.ts'
export { checkHostHeader, hasSeveralHosts } from './host-header.ts'
export { metadataPath, metadataUrl } from './metadata-url.ts'
export { checkPath, checkQuery, readAsBackends } from './path-check.ts'
export { withoutAmzParameters } from './query-policy.ts'
export { headerLines, removeHeaders } from './remove-headers.ts'
export { originFormOf, readRequestTarget } from './request-target.ts'
export {
  createResponsePolicy,
  holdsOne,
  isEventStream,
  isUtf8Json,
  type ParsedHeaders,
  type ResponseDropRule,
  type ResponseHead,
  whyDropped,
} from './response-policy.ts'
export { parseHttpDate } from './http-date.ts'
export { parseRetryAfter, retryAfterFor } from './retry-after.ts'
export { shownUrl } from './shown-url.ts'
export {
  foldedNames,
  type FoldedNames,
  foldName,
  isInOtherCase,
  JsonError,
  parseJsonObject,
  readJsonObject,
  type StrictJsonOptions,
} from './strict-json.ts'
export { checkTokenInHost, checkTokenInTarget } from './token-in-target.ts'
export { HOP_BY_HOP } from './hop-by-hop.ts'
