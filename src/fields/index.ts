export { innerOf, later, once } from './later.ts'
export {
  type Content,
  FILE_PATHS,
  type Found,
  type FoundContent,
  isHeaderForm,
  marked,
  markedContents,
  SECRET_REFS,
  withMark,
  withValueAt,
} from './marked.ts'
export { authServerReference, DEFAULT_NAMESPACE, localReference, metadata, type Metadata } from './metadata.ts'
export { withoutNulls } from './nulls.ts'
export {
  celPattern,
  HEADER_NAME,
  HOST_HEADER,
  HOST_PORT,
  HTTP_ISSUER_PLACE,
  HTTP_PLACE,
  HTTP_URL,
  ISSUER,
  ISSUER_PLACE,
  LISTEN_ADDRESS,
  PUBLIC_PATH,
  ROUTE_PATH,
} from './patterns.ts'
export { isLoopbackBind, judgePlainHttp, type PlainHttp } from './plain-http.ts'
export {
  exclusive,
  goesWithType,
  injectable,
  isInjectable,
  isRecord,
  needs,
  NOT_INJECTABLE,
  type Rule,
  rulesOf,
  UNSTRUCTURED,
  withCel,
  withRules,
} from './rules.ts'
export {
  absoluteUri,
  dataKey,
  filePath,
  goDuration,
  headerName,
  httpsBaseUrl,
  httpsUrl,
  httpUrl,
  int32,
  MAX_INT32,
  namespaceName,
  objectName,
  origins,
  passableHeader,
  scope,
  scopes,
  secondsBetween,
  secretRef,
  type SecretRef,
  size,
  timerDuration,
  trustedProxies,
} from './scalars.ts'
export { type Bytes, type Milliseconds, parseGoDuration, parseSize, seconds } from './units.ts'
