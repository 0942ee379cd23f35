/** The party that must act on a failure. */
export type Fault =
  'caller_token' | 'caller_rights' | 'request' | 'configuration' | 'identity_provider' | 'backend' | 'proxy'

export interface FailureRow {
  readonly status: number
  readonly fault: Fault
  /** Whether the same request may succeed later without any change. */
  readonly retryable: boolean
  /** `error` of OAuth responses and challenges. */
  readonly oauthError: string
  /** The only text that a client sees. */
  readonly sentence: string
  /**
   * What the operator should check; for docs/errors.md, the log, the inspector and `extauth check`. It does not refer
   * to the log, which its reader may not have. `detail` is shown beside it.
   */
  readonly remedy: string
}

const row = (
  status: number,
  fault: Fault,
  retryable: boolean,
  oauthError: string,
  sentence: string,
  remedy: string,
): FailureRow => ({ status, fault, retryable, oauthError, sentence, remedy })

/**
 * The error table (decisions §5). The code is the contract: it is `error.data.reason` on MCP routes and a metric
 * label. Every failure's status comes from here.
 */
// prettier-ignore
export const FAILURES = {
  missing_token: row(401, 'caller_token', false, 'invalid_token', 'This resource needs an access token.', 'Send `Authorization: Bearer …`; the challenge names the discovery document.'),
  invalid_token: row(401, 'caller_token', false, 'invalid_token', 'The access token is not valid for this resource.', 'Compare `iss` and `aud` of the token with `issuerUrl` and `audience` of the providers.'),
  expired_token: row(401, 'caller_token', false, 'invalid_token', 'The access token has expired.', 'Get a new token. If new tokens expire at once, compare the clocks of proxy and identity provider.'),
  insufficient_user_authentication: row(401, 'caller_token', false, 'insufficient_user_authentication', 'The identity provider requires a stronger or more recent login of this user.', 'A policy of the identity provider requires a stronger authentication (`acr_values` of the challenge) or a more recent login (`max_age`). Clients that implement RFC 9470 start it.'),
  no_session: row(401, 'caller_token', false, 'invalid_token', 'This caller has no upstream session; log in again.', "Log in again through the proxy's authorization server."),
  no_upstream_session: row(403, 'caller_rights', false, 'access_denied', "This backend requires a login at the proxy's authorization server; a token issued for an identity assertion has no upstream session.", 'The type (`upstreamInject`, or one with `subjectProviderName`) uses the upstream token of a login. Callers with identity assertions (`identityAssertions`) must log in, or use a route of another type.'),
  no_user: row(403, 'caller_rights', false, 'access_denied', 'This backend requires a user; the token belongs to a service client.', 'This type works for users only. Give service clients (`clients` and `workloads` of the authorization server) a route whose type needs no user.'),
  interaction_required: row(401, 'caller_token', false, 'invalid_token', 'The identity provider requires a stronger login than the one behind this token.', 'The login does not meet a policy of the identity provider (conditional access: second factor, device, location); `detail` has its error code. The second challenge of the response holds the `claims` for the next authorization request.'),
  not_a_user_token: row(403, 'caller_rights', false, 'access_denied', "This backend requires a user's token, not an application's token.", 'Type `obo` acts on behalf of users, but the token has `idtyp: app` or no delegated permission (`scp`). Give applications a route of another type, such as `clientCredentials`.'),
  no_id_token: row(403, 'caller_rights', false, 'access_denied', 'This backend requires an ID token, not an access token.', "Type `xaa` sends the identity provider an ID token issued for `idpClientId`. Let callers log in at the proxy's authorization server (`authServerRef`), or send such an ID token as the bearer token."),
  insufficient_scope: row(403, 'caller_rights', false, 'insufficient_scope', 'The access token lacks a required scope.', 'Grant the client the scopes in `requiredScopes` of the route.'),
  not_allowed: row(403, 'caller_rights', false, 'access_denied', 'This request is not allowed for this caller.', 'A rule of `authorization` of the route, or its `default`, denies the request; `/decisions` of the admin listener and `extauth explain --tool` name the rule.'),
  login_refused: row(403, 'caller_rights', false, 'access_denied', 'The identity provider did not let this user log in.', 'The user canceled, or a policy of the upstream identity provider rejected the login; see its error code.'),
  not_connected: row(200, 'caller_rights', false, 'access_denied', 'This backend requires your own account; connect it, then try again.', 'The caller has no connection to the provider that `connections` of the route names. The response holds the link; `/connections` lists the connections of a person.'),
  no_role: row(403, 'caller_rights', false, 'access_denied', 'No role is mapped to this caller.', "Run `extauth explain` with the caller's claims, then add a mapping or a `fallbackRoleArn`."),
  role_denied: row(403, 'caller_rights', false, 'access_denied', 'The role may not be assumed by this caller.', "The role's trust policy rejects this caller (STS returned AccessDenied), or a claim in its `roleArnTemplate` is missing, invalid in an ARN, or names an account that is not allowed; `extauth explain` shows which."),
  rule_limit: row(403, 'caller_rights', false, 'access_denied', 'A role rule reached its evaluation limit.', "A matcher is too expensive for this caller's claims; simplify it."),
  session_name_missing: row(403, 'caller_rights', false, 'access_denied', 'The access token lacks the claim that names the role session.', 'Set `sessionNameClaim` to a string claim that every token has.'),
  matcher_error: row(403, 'caller_rights', false, 'access_denied', 'A role rule could not be evaluated for this caller.', '`onMatcherError: deny` is set and a matcher failed; run `extauth explain`.'),
  exchange_denied: row(403, 'caller_rights', false, 'access_denied', 'The identity provider refused to exchange the token for this backend.', 'The token endpoint returned access_denied, invalid_request (for a token under two minutes old), invalid_target or unauthorized_client; check its policy for this audience.'),
  opaque_token_unsupported: row(403, 'caller_rights', false, 'access_denied', 'This backend needs a JWT access token; an opaque token cannot be used.', 'AssumeRoleWithWebIdentity accepts JWTs only; configure the identity provider to issue JWT access tokens.'),
  bad_request: row(400, 'request', false, 'invalid_request', 'The request is malformed or ambiguous.', '`detail` names the rule. Fix the client, or the intermediary before the proxy.'),
  aws_chunked: row(400, 'request', false, 'invalid_request', 'The body is signed in chunks (aws-chunked), which the proxy cannot re-sign; send it unchunked.', 'The proxy re-signs requests to a `cloudSts` backend. Let the client sign the whole body or none of it: with S3 clients `request_checksum_calculation=when_required`, `payload_signing_enabled`, or `chunkedEncodingEnabled(false)`.'),
  bad_origin: row(403, 'request', false, 'access_denied', 'Requests from this origin are not allowed.', 'Add the origin to `listen.allowedOrigins` or the host to `listen.allowedHosts`.'),
  expectation_failed: row(417, 'request', false, 'invalid_request', 'The expectation of this request cannot be met.', 'Only `100-continue` is supported in `Expect`; the client must omit other values.'),
  not_found: row(404, 'request', false, 'not_found', 'No resource at this path.', 'Compare the path with the `path` of the routes, and the session id with the one issued to this caller.'),
  unknown_session: row(404, 'request', false, 'not_found', 'Unknown session; start a new one.', 'The `Mcp-Session-Id` was issued to another caller, by another route, or with another session key (a replica or an earlier process without `sessionKeySecretRef`).'),
  method_not_allowed: row(405, 'request', false, 'invalid_request', 'This method is not allowed here.', 'The `Allow` header lists the methods.'),
  request_timeout: row(408, 'request', true, 'temporarily_unavailable', 'The request did not arrive in time.', 'The client sent the headers or the body too slowly.'),
  body_too_large: row(413, 'request', false, 'invalid_request', 'The request body is too large.', 'Raise `limits.bufferedBody` of the route if bodies of this size are expected.'),
  rate_limited: row(429, 'request', true, 'temporarily_unavailable', 'Too many requests from this address; try again later.', 'One address exceeds `embeddedAuthServer.limits`. Behind another proxy, set `listen.trustedProxies`.'),
  headers_too_large: row(431, 'request', false, 'invalid_request', 'The request headers are too large.', 'Raise `listen.headerLimit` if headers of this size are expected.'),
  upgrade_refused: row(501, 'request', false, 'invalid_request', 'Connection upgrades are not enabled here.', 'Set `allowUpgrade: true` on the route if the backend needs it.'),
  config_error: row(500, 'configuration', false, 'server_error', 'The proxy is not configured correctly for this backend.', "Check the named setting: a token URL that accepts no token requests, client authentication, the issuer's trust at STS, or an invalid value."),
  secret_unavailable: row(500, 'configuration', true, 'server_error', 'A secret that this backend needs is not available.', 'Create the named secret (`<secrets directory>/<name>/<key>`); the proxy reads it without a restart.'),
  type_not_runnable: row(500, 'configuration', false, 'server_error', 'This type of external authentication is not supported here.', 'The named document uses a type or option that this version loads but does not support.'),
  identity_provider_unavailable: row(503, 'identity_provider', true, 'temporarily_unavailable', 'The identity provider cannot be reached.', 'Check the identity provider; the token is not the cause.'),
  identity_provider_error: row(502, 'identity_provider', true, 'server_error', 'The identity provider returned an invalid response.', "Compare the URL with the provider's documentation; `detail` describes the fault."),
  exchange_failed: row(502, 'identity_provider', true, 'server_error', 'The token endpoint returned an invalid response.', "Does `tokenUrl` exchange tokens (RFC 8693 §2.2.1)? `detail` names the defect of the response, or the server's error code."),
  sts_throttled: row(503, 'identity_provider', true, 'temporarily_unavailable', 'The security token service is throttling requests.', 'Raise the quota or lengthen `sessionDuration`.'),
  sts_unavailable: row(503, 'identity_provider', true, 'temporarily_unavailable', 'The security token service cannot be reached.', 'Check the STS endpoint of the region and the network path.'),
  sts_failed: row(502, 'identity_provider', true, 'server_error', 'The security token service returned an invalid response.', "Compare the URL with the provider's documentation; `detail` describes the fault."),
  aws_identity_unavailable: row(503, 'identity_provider', true, 'temporarily_unavailable', 'The AWS identity of the proxy is not available.', 'No source in `source.chain` returned valid credentials (service account or role of the process, token file, metadata service). `detail` names the source; `extauth check` tests it.'),
  backend_unreachable: row(502, 'backend', true, 'server_error', 'The backend cannot be reached.', 'Check `target` and the network path.'),
  backend_no_answer: row(502, 'backend', false, 'server_error', 'The backend closed the connection without a response; it may have processed the request.', "Check the backend's log: it received at least part of the request. The proxy retries safe and idempotent methods only; the client decides about others. A backend that never responds may require TLS or a client certificate."),
  backend_error: row(502, 'backend', true, 'server_error', 'The backend returned a response that cannot be forwarded.', 'The response is malformed, has more than 256 header lines or 16 KiB of headers, or redirects to another origin.'),
  backend_timeout: row(504, 'backend', true, 'temporarily_unavailable', 'The backend did not respond in time.', 'Raise `timeouts.firstByte` of the route if slow responses are expected.'),
  backend_rejected_credential: row(502, 'backend', false, 'server_error', "The backend rejected the proxy's credential.", 'The credential in the MCPExternalAuthConfig is wrong or revoked; a new login does not help.'),
  backend_wants_credential: row(502, 'configuration', false, 'server_error', 'The backend requires a credential, but the proxy is configured to send none.', "The backend returned 401 on a route that sends no credential. Give the route an MCPExternalAuthConfig of a type that sends one, or turn off the backend's authentication."),
  egress_proxy_refused: row(502, 'configuration', false, 'server_error', 'The egress proxy rejected the request.', 'Check the egress proxy (`HTTPS_PROXY`, `HTTP_PROXY`), not the backend: 407 requires `http://USER:PASSWORD@HOST:PORT`, any other status is a rule for this host. Hosts in `NO_PROXY` are connected to directly.'),
  registry_unavailable: row(503, 'backend', true, 'temporarily_unavailable', 'This registry has no data yet.', "No valid data has been read from the registry's source yet; `/readiness` shows the reason."),
  store_unavailable: row(503, 'proxy', true, 'temporarily_unavailable', "The authorization server's store is unavailable.", '`/readiness` names the part of the store that is down; the request is not the cause.'),
  connections_full: row(503, 'proxy', false, 'temporarily_unavailable', 'No more accounts can be connected: the limit is reached. Disconnect accounts that are no longer used, then try again.', 'One person has 100 connections, or all people have 100,000 (`detail` says which). People end their own on the page `/connections`, operators those of a caller with `DELETE /connections` of the admin listener.'),
  audit_unavailable: row(503, 'proxy', true, 'temporarily_unavailable', 'The request cannot be recorded.', '`audit.whenFull` is `block` and the audit trail cannot be written: free space on the disk of `audit.file`, or set `whenFull: drop`.'),
  draining: row(503, 'proxy', true, 'temporarily_unavailable', 'The proxy is shutting down.', 'Retry; another replica serves the request.'),
  overloaded: row(503, 'proxy', true, 'temporarily_unavailable', 'Overloaded; retry later.', 'The concurrency limit of a token endpoint or identity provider is reached, or buffered request bodies reached `listen.bufferedBodiesLimit`.'),
  internal_error: row(500, 'proxy', false, 'server_error', 'Internal error.', 'A bug in the proxy; report it with the request id.'),
} as const satisfies Record<string, FailureRow>

export type FailureCode = keyof typeof FAILURES
