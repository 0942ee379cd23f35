/** Whose fault a failure is: the answer to "who has to do something?". */
export type Fault =
  'caller_token' | 'caller_rights' | 'request' | 'configuration' | 'identity_provider' | 'backend' | 'proxy'

export interface FailureRow {
  readonly status: number
  readonly fault: Fault
  /** Whether the same request may succeed later without anybody changing anything. */
  readonly retryable: boolean
  /** `error` of OAuth-shaped answers and challenges. */
  readonly oauthError: string
  /** The only text that a client sees. */
  readonly sentence: string
  /**
   * What the person who runs the proxy should look at; for docs/errors.md, the log, the inspector and `extauth check`. It
   * names no log: whoever reads it may have none. `detail` is what stands beside it wherever it is read.
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
 * The error table (decisions §5). The code is the contract: it is `error.data.reason` on MCP routes and a metric label.
 * No other file writes a status for a failure.
 */
// prettier-ignore
export const FAILURES = {
  missing_token: row(401, 'caller_token', false, 'invalid_token', 'This resource needs an access token.', 'The client sends `Authorization: Bearer …`; the challenge names the discovery document.'),
  invalid_token: row(401, 'caller_token', false, 'invalid_token', 'The access token is not valid for this resource.', 'Compare `iss` and `aud` of the token with `issuerUrl` and `audience` of the providers.'),
  expired_token: row(401, 'caller_token', false, 'invalid_token', 'The access token has expired.', 'The client gets a new token; if tokens expire at once, compare clocks.'),
  insufficient_user_authentication: row(401, 'caller_token', false, 'insufficient_user_authentication', 'The identity provider asks for another login of this user, stronger or more recent.', 'A policy of the identity provider wants another way of logging in (`acr_values` of the challenge) or a login that is not as long ago (`max_age`); clients that know RFC 9470 begin one.'),
  no_session: row(401, 'caller_token', false, 'invalid_token', 'There is no upstream session for this caller; log in again.', 'The caller logs in again through the authorization server.'),
  no_upstream_session: row(403, 'caller_rights', false, 'access_denied', 'This backend needs a login at the authorization server of this proxy; a token that came of an identity assertion has no upstream session.', 'The type (`upstreamInject`, or one with `subjectProviderName`) uses what an upstream gave at a login; callers with identity assertions (`identityAssertions`) need a type without it, or log in.'),
  no_user: row(403, 'caller_rights', false, 'access_denied', 'This backend needs a user; the token is of a program that acts for itself.', 'The type works for people only; give programs (`clients` and `workloads` of the authorization server) a route of a type that needs nobody.'),
  interaction_required: row(401, 'caller_token', false, 'invalid_token', 'The identity provider asks for another login, which proves more than this token does.', 'A policy of the identity provider (conditional access: a second factor, a device, a place) is not met by the login behind the token; `detail` has its error code. The second challenge of the answer holds what the client asks for when it logs the user in again.'),
  not_a_user_token: row(403, 'caller_rights', false, 'access_denied', 'This backend needs the token of a user; the access token is of an application.', 'Type `obo` acts on behalf of people: the token has `idtyp: app`, or no delegated permission (`scp`). Applications get a route of another type, such as `clientCredentials`.'),
  no_id_token: row(403, 'caller_rights', false, 'access_denied', 'This backend needs an ID token of the user; the access token that came is none.', 'Type `xaa` shows the identity provider an ID token that was made for `idpClientId`: let callers log in at the authorization server of this proxy (`authServerRef`), or send such an ID token as the bearer.'),
  insufficient_scope: row(403, 'caller_rights', false, 'insufficient_scope', 'The access token lacks a required scope.', 'Grant the scopes in `requiredScopes` of the route.'),
  not_allowed: row(403, 'caller_rights', false, 'access_denied', 'This request is not allowed for this caller.', 'A rule of `authorization` of the route, or its `default`, denies the request; `/decisions` of the admin listener and `extauth explain --tool` name the rule.'),
  login_refused: row(403, 'caller_rights', false, 'access_denied', 'The identity provider did not let this user log in.', 'The user cancelled, or a policy of the upstream identity provider refused; its error code says which.'),
  no_role: row(403, 'caller_rights', false, 'access_denied', 'No role is mapped to this caller.', "Run `extauth explain` with the caller's claims; add a mapping or a `fallbackRoleArn`."),
  role_denied: row(403, 'caller_rights', false, 'access_denied', 'The role may not be assumed by this caller.', 'The trust policy of the role refuses this caller (STS said AccessDenied), or a claim that its `roleArnTemplate` takes is missing, not usable in an ARN, or names an account that is not allowed; `extauth explain` says which.'),
  rule_limit: row(403, 'caller_rights', false, 'access_denied', 'A role rule reached its evaluation limit.', "A matcher costs too much for this caller's claims; simplify it."),
  session_name_missing: row(403, 'caller_rights', false, 'access_denied', 'The access token lacks the claim that names the role session.', 'Set `sessionNameClaim` to a claim that every token has as a string.'),
  matcher_error: row(403, 'caller_rights', false, 'access_denied', 'A role rule could not be evaluated for this caller.', '`onMatcherError: deny` is set and a matcher failed; run `extauth explain`.'),
  exchange_denied: row(403, 'caller_rights', false, 'access_denied', 'The identity provider refused to exchange the token for this backend.', 'The token endpoint answered access_denied, invalid_request (for a token under two minutes old), invalid_target or unauthorized_client; see its policy for this audience.'),
  opaque_token_unsupported: row(403, 'caller_rights', false, 'access_denied', 'This backend needs a JWT access token; an opaque token cannot be used.', 'AssumeRoleWithWebIdentity takes JWTs only; configure the identity provider to issue them.'),
  bad_request: row(400, 'request', false, 'invalid_request', 'The request is malformed or ambiguous.', '`detail` names the rule; the client or something before the proxy sent it.'),
  aws_chunked: row(400, 'request', false, 'invalid_request', 'The body is signed in pieces (aws-chunked), which this backend cannot be sent; send it whole.', 'Requests to a `cloudSts` backend are signed anew. Let the client sign the body as a whole or not at all: with S3 clients `request_checksum_calculation=when_required`, `payload_signing_enabled`, or `chunkedEncodingEnabled(false)`.'),
  bad_origin: row(403, 'request', false, 'access_denied', 'Requests from this origin are not allowed.', 'Add the origin to `listen.allowedOrigins` or the host to `listen.allowedHosts`.'),
  expectation_failed: row(417, 'request', false, 'invalid_request', 'The expectation of this request cannot be met.', 'Of the values of `Expect`, `100-continue` is supported; the client leaves out any other.'),
  not_found: row(404, 'request', false, 'not_found', 'Nothing is served at this address.', 'Compare the path with the `path` of the routes, and the session id with the one this caller was given.'),
  unknown_session: row(404, 'request', false, 'not_found', 'This session is not known here; begin a new one.', 'The `Mcp-Session-Id` was given to another caller, by another route, or under another session key (a replica or an earlier process without `sessionKeySecretRef`).'),
  method_not_allowed: row(405, 'request', false, 'invalid_request', 'This method is not allowed here.', 'See the `Allow` header.'),
  request_timeout: row(408, 'request', true, 'temporarily_unavailable', 'The request did not arrive in time.', 'The client sent headers or body too slowly.'),
  body_too_large: row(413, 'request', false, 'invalid_request', 'The request body is too large.', 'Raise `limits.bufferedBody` of the route if bodies of this size are meant.'),
  rate_limited: row(429, 'request', true, 'temporarily_unavailable', 'Too many requests from this address; try again later.', 'One address calls the authorization server faster than `embeddedAuthServer.limits` allows; behind a proxy, see `listen.trustedProxies`.'),
  headers_too_large: row(431, 'request', false, 'invalid_request', 'The request headers are too large.', 'Raise `listen.headerLimit` if headers of this size are meant.'),
  upgrade_refused: row(501, 'request', false, 'invalid_request', 'Connection upgrades are not enabled here.', 'Set `allowUpgrade: true` on the route if the backend needs it.'),
  config_error: row(500, 'configuration', false, 'server_error', 'The proxy is not configured correctly for this backend.', 'Look at what is named: a token URL that takes no token requests, client authentication there, trust of the issuer at STS, or an invalid setting.'),
  secret_unavailable: row(500, 'configuration', true, 'server_error', 'A secret that this backend needs is not available.', 'Create the secret that is named (`<secrets directory>/<name>/<key>`); it is picked up without a restart.'),
  type_not_runnable: row(500, 'configuration', false, 'server_error', 'This type of external authentication cannot run here yet.', 'The named document uses a type or an option that this version loads but cannot run.'),
  identity_provider_unavailable: row(503, 'identity_provider', true, 'temporarily_unavailable', 'The identity provider cannot be reached.', 'Check the identity provider; nothing is wrong with the token.'),
  identity_provider_error: row(502, 'identity_provider', true, 'server_error', 'The identity provider gave an answer that cannot be used.', 'Compare the address with the documentation of the provider; `detail` says what was wrong with the answer.'),
  exchange_failed: row(502, 'identity_provider', true, 'server_error', 'The token endpoint gave an answer that cannot be used.', 'Does `tokenUrl` exchange tokens (RFC 8693 §2.2.1)? `detail` names what was wrong with the answer, or the error code that the server gave.'),
  sts_throttled: row(503, 'identity_provider', true, 'temporarily_unavailable', 'The security token service is throttling requests.', 'Raise the quota or lengthen `sessionDuration`.'),
  sts_unavailable: row(503, 'identity_provider', true, 'temporarily_unavailable', 'The security token service cannot be reached.', 'Check the STS endpoint of the region and the network path.'),
  sts_failed: row(502, 'identity_provider', true, 'server_error', 'The security token service gave an answer that cannot be used.', 'Compare the address with the documentation of the provider; `detail` says what was wrong with the answer.'),
  aws_identity_unavailable: row(503, 'identity_provider', true, 'temporarily_unavailable', 'The AWS identity of the proxy is not available.', 'No place in `source.chain` gives credentials that are good now: the service account or role of the process, its token file, the metadata service; `detail` says which was asked and `extauth check` asks it again.'),
  backend_unreachable: row(502, 'backend', true, 'server_error', 'The backend cannot be reached.', 'Check `target` and the network path.'),
  backend_no_answer: row(502, 'backend', false, 'server_error', 'The backend ended the connection without an answer; it may have processed the request.', 'Look at the log of the backend: it was sent the request, or a part of it, and closed the connection. Only a request with a safe or idempotent method is repeated; whether another may be sent again, its caller decides. A backend that never answers may want TLS or a client certificate.'),
  backend_error: row(502, 'backend', true, 'server_error', 'The backend gave an answer that cannot be forwarded.', 'A malformed answer, a header section of more than 256 lines or 16 KiB, or a redirect to another origin.'),
  backend_timeout: row(504, 'backend', true, 'temporarily_unavailable', 'The backend did not answer in time.', 'Raise `timeouts.firstByte` of the route if the backend is meant to be slow.'),
  backend_rejected_credential: row(502, 'backend', false, 'server_error', 'The backend refused the credential that the proxy has for it.', 'The credential in the MCPExternalAuthConfig is wrong or revoked; logging in again does not help.'),
  backend_wants_credential: row(502, 'configuration', false, 'server_error', 'The backend wants a credential, and the proxy is configured to send none.', 'The backend answered 401 on a route that sends no credential: give the route an MCPExternalAuthConfig of a type that sends one, or remove the authentication of the backend.'),
  egress_proxy_refused: row(502, 'configuration', false, 'server_error', 'The egress proxy did not let the request through.', 'Look at the egress proxy (`HTTPS_PROXY`, `HTTP_PROXY`), not at the backend: 407 wants `http://USER:PASSWORD@HOST:PORT`, any other status is a rule for this host; `NO_PROXY` names hosts that are connected to directly.'),
  registry_unavailable: row(503, 'backend', true, 'temporarily_unavailable', 'This registry has no data yet.', 'The source of the registry has never given data that can be served; `/readiness` says why.'),
  store_unavailable: row(503, 'proxy', true, 'temporarily_unavailable', 'The store of the authorization server cannot be used now.', '`/readiness` says which part of the store is down; nothing is wrong with the request.'),
  draining: row(503, 'proxy', true, 'temporarily_unavailable', 'The proxy is shutting down.', 'Retry; another replica answers.'),
  overloaded: row(503, 'proxy', true, 'temporarily_unavailable', 'Too much is waiting already.', 'The concurrency bound of a token endpoint or identity provider is reached, or `listen.bufferedBodiesLimit` by request bodies that must be kept.'),
  internal_error: row(500, 'proxy', false, 'server_error', 'Something went wrong inside the proxy.', 'A bug; report it with the request id.'),
} as const satisfies Record<string, FailureRow>

export type FailureCode = keyof typeof FAILURES
