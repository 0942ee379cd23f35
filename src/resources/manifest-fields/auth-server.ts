import { refused, runs, told, type FieldTable } from './verdict.ts'

/** What becomes of fields of `embeddedAuthServer`, and of `authServerConfig` of a VirtualMCPServer; others run as they are. */
export const AUTH_SERVER_FIELDS: FieldTable = {
  issuer: runs(),
  authorizationEndpointBaseUrl: runs(),
  hmacSecretRefs: runs(),
  signingKeySecretRefs: runs(),
  tokenLifespans: runs(),
  upstreamProviders: runs(),
  storage: runs('`redis` is the same as `kvstore`'),
  primaryUpstreamProvider: refused(
    'who logs in is who the first of "upstreamProviders" says; expected none, and that provider first in the list',
    (value) => value !== '',
  ),
  disableUpstreamTokenInjection: refused(
    'what a backend gets is said by "externalAuthConfigRef"; expected none, and this server in "authServerRef" beside an MCPExternalAuthConfig of type "unauthenticated"',
    (value) => value === true,
  ),
  insecureAllowHTTP: refused(
    'an issuer with http is for localhost only; expected none, and an issuer with https',
    (value) => value === true,
  ),
  baselineClientScopes: refused('clients have the scopes that they register; expected none'),
  allowConfidentialClientRegistration: refused(
    'clients may always register a secret here; expected true, or none',
    (value) => value === false,
  ),
  insecureAllowConfidentialOverLoopbackHTTP: told('so it is on loopback'),
  forceConfidentialRedirectUris: refused('clients are as confidential as they register; expected none'),
  cimd: refused(
    'metadata documents are always read, and kept as long as they say; expected none, or "enabled: true" alone',
    (value) => JSON.stringify(value) !== '{"enabled":true}',
  ),
  delegateClients: refused('no client acts for others here; expected none'),
  trustedIssuers: refused('tokens of other issuers are not exchanged here; expected none'),
  'upstreamProviders[].oidcConfig.subjectClaim': refused(
    'the identity of an upstream is its "sub"; expected none, or "sub"',
    (value) => value !== 'sub' && value !== '',
  ),
  'upstreamProviders[].oauth2Config.identityFromToken': refused('who logged in is read from "userInfo"; expected that'),
  'upstreamProviders[].oauth2Config.dcrConfig': refused(
    'nothing is registered at an upstream; expected "clientId" of a client that is registered there',
  ),
  'upstreamProviders[].oauth2Config.allowPrivateIPs': refused(
    'expected "allowPrivateIP" beside "oauth2Config" instead',
    (value) => value === true,
  ),
  'upstreamProviders[].oauth2Config.insecureAllowHTTP': refused(
    'plain http is for loopback and in-cluster names only; expected none, and endpoints with https',
    (value) => value === true,
  ),
  'storage.redis.addr': refused(
    'the store is found through Sentinel; expected "sentinelConfig"',
    (value) => value !== '',
  ),
  'storage.redis.clusterMode': refused(
    'a store in cluster mode is not used here; expected "sentinelConfig"',
    (value) => value === true,
  ),
}
