/** Error codes of the OAuth endpoints, with their HTTP status. */
const STATUSES = {
  access_denied: 403,
  consent_required: 400,
  invalid_client: 401,
  invalid_client_metadata: 400,
  invalid_grant: 400,
  invalid_redirect_uri: 400,
  invalid_request: 400,
  invalid_scope: 400,
  invalid_target: 400,
  login_required: 400,
  registration_not_supported: 400,
  request_not_supported: 400,
  request_uri_not_supported: 400,
  server_error: 500,
  temporarily_unavailable: 503,
  unauthorized_client: 400,
  unsupported_grant_type: 400,
  unsupported_response_type: 400,
  unsupported_token_type: 400,
} as const satisfies Record<string, number>

export type OAuthErrorCode = keyof typeof STATUSES

/** An OAuth error: `error` and `error_description` of RFC 6749 §4.1.2.1 and §5.2, RFC 7591 §3.2.2, RFC 8707 §2. */
export class OAuthError extends Error {
  readonly error: OAuthErrorCode
  /** Printable ASCII without quote and backslash (RFC 6749 §5.2), without external values. */
  readonly description: string

  constructor(error: OAuthErrorCode, description: string, options: { readonly cause?: unknown } = {}) {
    super(error, { cause: options.cause })
    this.name = 'OAuthError'
    this.error = error
    this.description = description
  }

  get status(): number {
    return STATUSES[this.error]
  }
}

/** An assertion that does not count: outside it is always the same, the cause is for the log. */
export class RefusedAssertion extends OAuthError {
  /** Reason without external text. */
  readonly why: string

  constructor(why: string) {
    super('invalid_grant', 'the assertion is not accepted')
    this.name = 'RefusedAssertion'
    this.why = why
  }
}
