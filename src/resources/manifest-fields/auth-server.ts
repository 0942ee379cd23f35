import { rejected, supported, type FieldTable } from './verdict.ts'

const isTrue = (value: unknown): boolean => value === true
const NO_EXCHANGE = rejected('tokens are not exchanged here (RFC 8693); expected "jwtBearerGrant" alone')

/**
 * Support of fields of `embeddedAuthServer` and of a VirtualMCPServer's `authServerConfig`; unlisted fields are
 * supported.
 */
export const AUTH_SERVER_FIELDS: FieldTable = {
  issuer: supported(),
  authorizationEndpointBaseUrl: supported(),
  hmacSecretRefs: supported(),
  signingKeySecretRefs: supported(),
  tokenLifespans: supported(),
  upstreamProviders: supported(),
  storage: supported('`redis` is the same as `kvstore`'),
  primaryUpstreamProvider: supported('this provider identifies the user; a login starts there'),
  disableUpstreamTokenInjection: supported('a route that sends such a token nevertheless is refused'),
  insecureAllowHTTP: supported('with a warning at each start'),
  baselineClientScopes: supported('scopes that no route has are left out, with a warning at each start'),
  allowConfidentialClientRegistration: supported('absent: false, and true in documents of `extauth.dev`'),
  insecureAllowConfidentialOverLoopbackHTTP: supported('absent: false, and true in documents of `extauth.dev`'),
  forceConfidentialRedirectUris: supported(),
  cimd: supported(
    '`enabled` absent: false, and true in documents of `extauth.dev`; a document with a lifetime (HTTP caching) is kept that long',
  ),
  delegateClients: rejected(
    'token exchange for another user is not supported (RFC 8693); expected none, and "clients" or "workloads" for programs that act for themselves',
  ),
  'trustedIssuers[].issuerUrl': supported(),
  'trustedIssuers[].jwksUrl': supported(),
  'trustedIssuers[].allowPrivateIPs': supported(),
  'trustedIssuers[].jwtBearerGrant': supported(
    'as `workloads`, an entry for each subject: an assertion counts once, for us alone, and our token has no scopes and ends with it',
  ),
  'trustedIssuers[].insecureAllowHTTP': rejected('keys are fetched by https only; expected none', isTrue),
  'trustedIssuers[].expectedAudience': NO_EXCHANGE,
  'trustedIssuers[].actorClaim': NO_EXCHANGE,
  'trustedIssuers[].actorMatcher': NO_EXCHANGE,
  'trustedIssuers[].allowedActors': NO_EXCHANGE,
  'trustedIssuers[].allowedDelegateClients': NO_EXCHANGE,
  'trustedIssuers[].allowMayAct': rejected(NO_EXCHANGE.details, isTrue),
  'upstreamProviders[].oidcConfig.subjectClaim': supported(),
  'upstreamProviders[].oauth2Config.identityFromToken': supported(
    'dot paths, and `|@upstreamjwt|` once; no other queries',
  ),
  'upstreamProviders[].oauth2Config.userInfo': supported(
    'without it and without `identityFromToken` each login is a user of its own (condition `IdentitySynthesized`)',
  ),
  'upstreamProviders[].oauth2Config.dcrConfig': supported(
    'registered once for all replicas; with storage `memory` at each start',
  ),
  'upstreamProviders[].oauth2Config.allowPrivateIPs': supported('the same as `allowPrivateIP` beside `oauth2Config`'),
  'upstreamProviders[].oauth2Config.insecureAllowHTTP': supported(
    'loopback and in-cluster names may have plain http with it or without it; with it for other names it is refused',
  ),
  'storage.redis.addr': supported('one server; failover behind its name is the responsibility of its operator'),
  'storage.redis.clusterMode': rejected(
    'a store in cluster mode is not used here; expected "addr" of one server, or "sentinelConfig"',
    (value) => value === true,
  ),
}
