import { refused, runs, type FieldTable } from './verdict.ts'

const isTrue = (value: unknown): boolean => value === true
const NO_EXCHANGE = refused('tokens are not exchanged here (RFC 8693); expected "jwtBearerGrant" alone')

/** What becomes of fields of `embeddedAuthServer`, and of `authServerConfig` of a VirtualMCPServer; others run as they are. */
export const AUTH_SERVER_FIELDS: FieldTable = {
  issuer: runs(),
  authorizationEndpointBaseUrl: runs(),
  hmacSecretRefs: runs(),
  signingKeySecretRefs: runs(),
  tokenLifespans: runs(),
  upstreamProviders: runs(),
  storage: runs('`redis` is the same as `kvstore`'),
  primaryUpstreamProvider: runs('who logs in is who that provider says; a login visits it first'),
  disableUpstreamTokenInjection: runs('a route that sends such a token nevertheless is refused'),
  insecureAllowHTTP: runs('with a warning at each start'),
  baselineClientScopes: runs('scopes that no route has are left out, with a warning at each start'),
  allowConfidentialClientRegistration: runs('absent: false, and true in documents of `extauth.dev`'),
  insecureAllowConfidentialOverLoopbackHTTP: runs('absent: false, and true in documents of `extauth.dev`'),
  forceConfidentialRedirectUris: runs(),
  cimd: runs(
    '`enabled` absent: false, and true in documents of `extauth.dev`; a document that says how long it counts is kept that long',
  ),
  delegateClients: refused(
    'no client gets tokens for somebody else by an exchange here (RFC 8693); expected none, and "clients" or "workloads" for programs that act for themselves',
  ),
  'trustedIssuers[].issuerUrl': runs(),
  'trustedIssuers[].jwksUrl': runs(),
  'trustedIssuers[].allowPrivateIPs': runs(),
  'trustedIssuers[].jwtBearerGrant': runs(
    'as `workloads`, an entry for each subject: an assertion counts once, for us alone, and our token has no scopes and ends with it',
  ),
  'trustedIssuers[].insecureAllowHTTP': refused('keys are fetched by https only; expected none', isTrue),
  'trustedIssuers[].expectedAudience': NO_EXCHANGE,
  'trustedIssuers[].actorClaim': NO_EXCHANGE,
  'trustedIssuers[].actorMatcher': NO_EXCHANGE,
  'trustedIssuers[].allowedActors': NO_EXCHANGE,
  'trustedIssuers[].allowedDelegateClients': NO_EXCHANGE,
  'trustedIssuers[].allowMayAct': refused(NO_EXCHANGE.says, isTrue),
  'upstreamProviders[].oidcConfig.subjectClaim': runs(),
  'upstreamProviders[].oauth2Config.identityFromToken': runs('dot paths, and `|@upstreamjwt|` once; no other queries'),
  'upstreamProviders[].oauth2Config.userInfo': runs(
    'without it and without `identityFromToken` each login is a user of its own (condition `IdentitySynthesized`)',
  ),
  'upstreamProviders[].oauth2Config.dcrConfig': runs(
    'registered once for all replicas; with storage `memory` at each start',
  ),
  'upstreamProviders[].oauth2Config.allowPrivateIPs': runs('the same as `allowPrivateIP` beside `oauth2Config`'),
  'upstreamProviders[].oauth2Config.insecureAllowHTTP': runs(
    'loopback and in-cluster names may have plain http with it or without it; with it for other names it is refused',
  ),
  'storage.redis.addr': runs('one server; a failover behind its name is for whoever runs it'),
  'storage.redis.clusterMode': refused(
    'a store in cluster mode is not used here; expected "addr" of one server, or "sentinelConfig"',
    (value) => value === true,
  ),
}
