// The schemas, and the types that come from them.
export {
  AUTH_TYPES,
  filesNamedBy,
  headersSetBy,
  secretsNamedBy,
  TYPE_RECORDS,
  typedSpec,
  urlsCalledBy,
} from './auth-types.ts'
export type { AuthSpecs, AuthType, ExternalAuthSpec, RunnableType } from './auth-types.ts'
export type { TypeRecord } from './type-record.ts'
export { externalAuthConfig } from './external-auth.ts'
export type { MCPExternalAuthConfig } from './external-auth.ts'
export { authSection, provider } from './auth-section.ts'
export type { AnonymousSection, AuthSection, ManifestSection, OAuthSection, Provider } from './auth-section.ts'
export { dnsSuffixOf } from './aws-partitions.ts'
export type { CloudSts, RoleMapping } from './cloud-sts.ts'
export { tokenTypeUrn } from './token-exchange.ts'
export type { TokenExchange } from './token-exchange.ts'
export type { BearerToken, HeaderInjection, UpstreamInject } from './static-types.ts'
export { RESERVED_CLAIMS, type EmbeddedAuthServer } from './embedded-auth-server.ts'
export type { KvStore, Storage } from './embedded-storage.ts'
export type { OAuth2Config, OidcConfig, UpstreamProvider, UserInfo } from './upstream-provider.ts'
export type { SecretRef } from './scalars.ts'
export { INSPECTOR_MODES, proxyConfig } from './proxy-config.ts'
export type { InspectorMode, ProxyConfig, ProxyRoute } from './proxy-config.ts'
export { registryConfig } from './registry-config.ts'
export type { RegistryConfig } from './registry-config.ts'
export { ROLE_REFUSALS, roleTest } from './role-test.ts'
export type { RoleCase, RoleTest } from './role-test.ts'
export { WORKLOAD_KINDS } from './workloads.ts'
export type { Workload, WorkloadKind } from './workloads.ts'
export { bytes, milliseconds, parseGoDuration, parseSize, seconds } from './units.ts'
export type { Bytes, GoDuration, Milliseconds, Seconds } from './units.ts'

// Files → documents, with every problem.
export { loadFiles, STDIN } from './load-files.ts'
export { loadCallersFile, loadRegistryFile, readCallersText } from './load-single.ts'
export type { SingleResult } from './load-single.ts'
export { parseDocuments, parseObjects } from './parse-documents.ts'
export { judgeMatchers } from './matcher-verdicts.ts'
export type { Judged, Patience } from './matcher-verdicts.ts'
export type { ParseOptions, SourceText } from './parse-documents.ts'
export type { MarkedPod } from './marked-pod.ts'
export type { Declared, Loaded, LocatedAuth } from './loaded.ts'
export { fileProblem as problemOfFile, renderProblem } from './problem.ts'
export type { Located, Problem } from './problem.ts'
export type { NamedFile, NamedSecret } from './named-files.ts'
export { isHeaderForm, type Content } from './marked.ts'
export { ConfigPlaces, type ConfigPart } from './config-places.ts'
export { DEFAULT_API_GROUP, OUR_KINDS } from './document-kinds.ts'
export { YAML_LIMITS } from './yaml.ts'
export { HTTP_URL } from './patterns.ts'

// Documents → what a process runs.
export { resolveProxy, secretsDirectoryOf } from './resolve-proxy.ts'
export type { ProxyResult } from './resolve-proxy.ts'
export type { ProxyOverrides } from './proxy-overrides.ts'
export { resolveAuth } from './resolve-auth.ts'
export type { AuthResult } from './resolve-auth.ts'
export { splitExternalAuth } from './external-auth-option.ts'
export type * from './resolved.ts'
export type { ResolvedProxy } from './resolved-proxy.ts'
export { canonicalJson, configHash } from './config-hash.ts'

// What is generated from the schemas.
export { jsonSchema, JSON_SCHEMA_NAMES } from './json-schema.ts'
export { combinedSchema } from './combined-schema.ts'
export type { JsonSchemaName } from './json-schema.ts'
export { CRD_KINDS, customResourceDefinition } from './crd.ts'
export type { CrdKind } from './crd.ts'
