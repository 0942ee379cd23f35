export { audit, type AuditSettings, recordedEvents, STDOUT } from './audit.ts'
export { type Authorization, type AuthorizationRule, remarksOnRules } from './authorization.ts'
export {
  authSection,
  type AuthSection,
  type ManifestProvider,
  manifestSection,
  type ManifestSection,
  type OAuthSection,
  type Provider,
  PROXY_DEFAULTS,
  filesOfProvider,
  secretsOfProvider,
} from './auth-section.ts'
export {
  AUTH_TYPES,
  cacheKeyOf,
  checkProbeOf,
  credentialOf,
  clientsOf,
  hasRoles,
  type RoleType,
  typeWrittenAs,
  WRITTEN_TYPES,
  type AuthSpecs,
  type AuthType,
  type ExternalAuthSpec,
  filesNamedBy,
  headersSetBy,
  remarksOn,
  remarksOnAudience,
  remarksOnTarget,
  type RunnableType,
  secretsNamedBy,
  TYPE_RECORDS,
  typedSpec,
  type TypedSpec,
  upstreamTokenOf,
  urlsCalledBy,
} from './auth-types.ts'
export { stsHost } from './aws/aws-partitions.ts'
export type { CloudSts, RoleMapping } from './aws/cloud-sts.ts'
export {
  type AmbientName,
  type AmbientSpec,
  chainOf,
  showsCallerToken,
  signsAsService,
  type StsSource,
} from './aws/sts-source.ts'
export { type SessionPolicy, SOURCE_IDENTITY, TAG_VALUE } from './aws/session-fields.ts'
export { asciiJson, fillPolicy, LONGEST_POLICY, parsedTemplate } from './aws/session-policy.ts'
export { ROLE_ARN, templateParts } from './aws/role-arn.ts'
export {
  asksFor,
  AUTH_SERVER_FIELDS,
  fieldsBelow,
  type FieldTable,
  TELEMETRY_FIELDS,
  TOOL_FIELDS,
  WORKLOAD_FIELDS,
} from './manifest-fields/index.ts'
export {
  type ConnectionProvider,
  connectionUrls,
  connections,
  type Connections,
  maxAgeMs,
  secretsOfConnections,
  upstreamOfConnection,
  upstreamOfLogin,
} from './connections.ts'
export { canonicalJson, configHash } from './config-hash.ts'
export { CLIENT_PRESETS, withClientPresets } from './client-rules.ts'
export {
  type EmbeddedAuthServer,
  RESERVED_CLAIMS,
  synthesizedIdentities,
  upstreamsInOrder,
} from './embedded-auth-server.ts'
export {
  type ConfiguredClient,
  type IdentityAssertionIssuer,
  JWT_BEARER,
  type TrustedIssuer,
} from './programs/grants-without-login.ts'
export { takesWorkloads, trustedIssuersOf, type WorkloadEntry, workloadEntries } from './programs/workload-entries.ts'
export type { LocalStorage, Storage } from './embedded-storage.ts'
export { externalAuthConfig, type MCPExternalAuthConfig } from './external-auth.ts'
export type { CaBundleRef } from './ca-bundle.ts'
export { forwardedNames, forwardedSecrets, type HeaderForward } from './workloads/header-forward.ts'
export { type MatcherValidation, validateMatchers, type TimeLimit } from './aws/matcher-verdicts.ts'
export {
  INSPECTOR_MODES,
  type InspectorMode,
  listenAddress,
  proxyConfig,
  type ProxyConfig,
  type ProxyRoute,
  route,
} from './proxy-config.ts'
export { registryConfig, type RegistryConfig } from './registry-config.ts'
export type {
  ResolvedAuth,
  ResolvedCredential,
  ResolvedAuthOf,
  ResolvedAuthServer,
  ResolvedCache,
  ResolvedConnections,
  ResolvedRoute,
  ResolvedTelemetry,
  RouteAuthServer,
  SourcePlace,
  UpstreamUse,
} from './resolved.ts'
export { ROLE_REFUSALS, type RoleCase, roleTest, type RoleTest } from './role-test.ts'
export { type ClientAuth, clientAuthOf, type FlatClient, SIGNATURE_ALGORITHMS } from './client-auth.ts'
export type { ClientCredentialsGrant } from './client-credentials.ts'
export { type Obo, oboClient, oboEndpoints, oboScope } from './on-behalf/obo.ts'
export { type TokenExchange, tokenTypeUrn } from './token-exchange.ts'
export { type Xaa, xaaEndpoints } from './on-behalf/xaa.ts'
export type { CalledUrl, FirstSecret, UpstreamTokenUse } from './type-record.ts'
export {
  FORM_POST,
  hasSynthesizedIdentity,
  type IdentityFromToken,
  type OAuth2Config,
  type OidcConfig,
  type UpstreamProvider,
  mayBePrivate,
  type UserInfo,
} from './upstream/upstream-provider.ts'
export { namedClient, upstreamClient } from './upstream/upstream-client.ts'
export { mcpOidcConfig, type MCPOIDCConfig } from './workloads/mcp-oidc-config.ts'
export {
  type InlineOidc,
  type KubernetesOidc,
  oidcConfig as manifestOidc,
  type OidcConfig as ManifestOidc,
  oidcConfigRef,
  type OidcConfigRef,
} from './workloads/oidc-callers.ts'
export {
  type InlineTelemetry,
  mcpTelemetryConfig,
  type MCPTelemetryConfig,
  type OpenTelemetrySettings,
  type TelemetryConfigRef,
  tracesUrl,
} from './workloads/telemetry.ts'
export { mcpToolConfig, type MCPToolConfig } from './workloads/tool-config.ts'
export type { VirtualServerSpec, VirtualServerStatus } from './workloads/virtual-server.ts'
export {
  decidesAccess,
  FOREIGN_FIELDS,
  INCOMING_AUTH_FIELDS,
  type ParsedWorkload,
  type RemoteSpec,
  type RouteSettings,
  workload,
  WORKLOAD_KINDS,
  whyIdle,
  whyNotRead,
  workloadFields,
  type WorkloadKind,
} from './workloads/workloads.ts'
export { type Autoscaling, type ResourceOverrides, referringStatus } from './workloads/remote-proxy.ts'
export type { SecretRef } from '../fields/index.ts'
export { authsOf, connectionsOf } from './resolved.ts'
