import type { Fault } from './failures.ts'

/** Texts of a violated rule, more precise than the failure's code. */
export interface Rule {
  /** The event, for the log. */
  readonly detail: string
  /** The cause for the person who must act; undefined when the failure's own detail is more specific. */
  readonly cause: string | undefined
  readonly remedy: string
  /** The party that must act, when it differs from that of the failure's code. */
  readonly who?: Fault
}

const rule = (detail: string, cause: string | undefined, remedy: string, who?: Fault): Rule => ({
  detail,
  cause,
  remedy,
  ...(who === undefined ? {} : { who }),
})

/**
 * Rules that a request, token or response can violate, by the code in `Failure.rule`. The log, the inspector,
 * `extauth check` and `extauth stdio` use these texts.
 */
export const RULES = {
  iss_unknown: rule(
    'iss names no provider',
    "the token's issuer (iss) matches no provider",
    'Get a token from a configured provider, or add one with this `issuerUrl`. They must match exactly, including a trailing slash.',
  ),
  iss_other: rule(
    'iss is not the issuer of this provider',
    "the token's issuer (iss) differs from the provider's `issuerUrl`",
    'Set `issuerUrl` to exactly the `iss` of the tokens.',
    'configuration',
  ),
  aud_missing: rule(
    'aud is missing',
    'the token has no audience (aud)',
    "Configure the identity provider to put the provider's `audience` into access tokens (a resource or API setting).",
    'identity_provider',
  ),
  aud_other: rule(
    'aud is not the audience of this provider',
    'wrong audience (aud)',
    "Request a token with this audience (`resource` or `audience` parameter), or set the provider's `audience` to the tokens' value.",
  ),
  exp_missing: rule(
    'exp is missing',
    'the token has no expiry (exp)',
    'Configure the identity provider to issue tokens that expire.',
    'identity_provider',
  ),
  exp_malformed: rule(
    'exp is not a number',
    'the expiry of the token (exp) is not a number',
    'The identity provider must send seconds since the epoch.',
    'identity_provider',
  ),
  exp_passed: rule(
    'exp has passed',
    'the token has expired (exp)',
    'Get a new token. If new tokens expire at once, compare the clocks of proxy and identity provider.',
  ),
  nbf_malformed: rule(
    'nbf is not a number',
    'the start of the token (nbf) is not a number',
    'The identity provider must send seconds since the epoch.',
    'identity_provider',
  ),
  nbf_early: rule(
    'nbf is still to come',
    'the token is not valid yet (nbf)',
    'Compare the clocks of proxy and identity provider; `toleranceSeconds` allows up to 60 s of skew.',
    'configuration',
  ),
  iat_early: rule(
    'iat is still to come',
    'the token was issued in the future (iat)',
    'Compare the clocks of proxy and identity provider; `toleranceSeconds` allows up to 60 s of skew.',
    'configuration',
  ),
  sub_malformed: rule(
    'sub is not a string',
    'the subject of the token (sub) is not a string',
    'The identity provider must send a string.',
    'identity_provider',
  ),
  sub_other: rule(
    'sub is not the subject of this provider',
    "the token's subject (sub) is not the `subject` of this provider",
    "Use a token of that subject, or correct the provider's `subject`.",
  ),
  signature_wrong: rule(
    'the signature is wrong',
    'the signature was not made by the key that the token names (kid)',
    'Send the token unmodified. Two issuers with one name, as after a restored backup, have different keys.',
  ),
  key_unknown: rule(
    'no key of the provider fits',
    'the key that the token names (kid) is not among the keys of the provider',
    "Get a new token: the key was replaced. If new tokens fail too, compare `jwksUrl` with the issuer's `jwks_uri`.",
  ),
  key_ambiguous: rule(
    'several keys of the provider match and the token has no kid',
    'the token names no key (kid), and several keys match',
    'Configure the issuer to set `kid` in its tokens.',
    'identity_provider',
  ),
  alg_refused: rule(
    'alg is not accepted',
    'the signature algorithm (alg) is not accepted; HMAC and none never are',
    'Configure the issuer to sign with RS256, ES256 or EdDSA.',
    'identity_provider',
  ),
  typ_other: rule(
    'typ is not that of an access token',
    'it is another kind of token (typ), such as an ID or logout token',
    'Send the access token.',
  ),
  typ_not_at_jwt: rule(
    'typ is not at+jwt',
    'it is another kind of token (typ), such as an ID token',
    'Send the access token that the authorization server issued.',
  ),
  crit_unknown: rule(
    'crit names an unsupported extension',
    'the token requires an unsupported extension (crit)',
    'Configure the issuer to omit `crit`.',
    'identity_provider',
  ),
  cnf_unsupported: rule(
    'sender-constrained tokens are not supported',
    'the token is bound to a key of the client (cnf: DPoP, mutual TLS), and the proxy does not check such bindings',
    'Request a bearer token, or set `allowBoundTokens: true` on the route.',
    'configuration',
  ),
  kid_malformed: rule(
    'kid is not a string',
    'the key ID (kid) is not a string',
    'The identity provider must send a string.',
    'identity_provider',
  ),
  jwt_malformed: rule(
    'the token is a JWT that is not well-formed',
    'the token looks like a JWT but cannot be parsed',
    'Send the complete token: it may have been truncated, wrapped or quoted.',
  ),
  opaque_unsupported: rule(
    'no provider accepts tokens of this kind',
    'the token is opaque, and no provider has introspection configured',
    'Set `introspectionUrl` of the provider, or configure the issuer to issue JWTs.',
    'configuration',
  ),
  token_inactive: rule(
    'the provider reports the token as inactive',
    'the provider reports the token as not active: expired, revoked, or issued by another server',
    'Log in again. If new tokens fail too, check `introspectionUrl` and the introspection client.',
  ),
  own_signature_wrong: rule(
    'not signed by the embedded authorization server',
    'the token names the embedded authorization server as issuer but was not signed with its keys',
    'Log in again: the keys of the authorization server were replaced.',
  ),
  bearer_malformed: rule(
    'not a bearer token',
    'the value after `Bearer` is not a token',
    'Send the token alone: no quotes, no line ends, no second Bearer.',
  ),
  token_too_long: rule(
    'the token is longer than 16 KiB',
    'the token is longer than 16 KiB',
    'Reduce its claims; group lists are the usual cause.',
    'identity_provider',
  ),
  authorization_repeated: rule(
    'more than one Authorization header',
    'there is more than one Authorization header',
    'Send one; a gateway may have added its own.',
  ),
  keys_fetched_recently: rule(
    'the keys are not fetched again yet',
    "the token's key (kid) is unknown, and the keys were fetched a moment ago",
    'Retry in some seconds: the proxy fetches the keys again.',
    'identity_provider',
  ),
  client_reads_slowly: rule(
    'the client does not read its response',
    'the client reads its response at less than 240 bytes a second',
    'Check the client and the network path to it.',
  ),
  body_late: rule(
    'the body did not arrive in time',
    'the body did not arrive in time',
    'The client sent it too slowly.',
  ),
  body_stopped: rule('the body stalled', 'the body stalled', 'The client stopped sending.'),
  redirect_foreign: rule(
    'foreign redirect',
    'the backend returned a redirect to another origin',
    "Set `target` to the redirect's destination; credentials are never sent to another origin.",
    'configuration',
  ),
  session_revoked: rule(
    'the session of the token was revoked',
    'the session of the token was revoked',
    'Log in again.',
  ),
  session_unknown: rule(
    'the session of the token does not exist',
    'the authorization server has no session for the token',
    'Log in again.',
  ),
  key_set_unusable: rule(
    'the key set is not usable',
    undefined,
    'Set `jwksUrl` to `jwks_uri` of the discovery document, or omit it.',
    'configuration',
  ),
  discovery_unusable: rule(
    'the discovery document is not usable',
    undefined,
    'Set `issuerUrl` to the `iss` of the tokens; its metadata must be below `/.well-known/`.',
    'configuration',
  ),
  discovery_other_issuer: rule(
    'the discovery document is for another issuer',
    undefined,
    "Set `issuerUrl` exactly to the document's `issuer`, including a trailing slash.",
    'configuration',
  ),
  mcp_method: rule(
    'a body on another method than POST, or another method',
    'this route authorizes requests by their body, which only POST has',
    'Send MCP messages with POST; GET and DELETE have no body.',
  ),
  mcp_media_type: rule(
    'the body is not application/json',
    'the media type of the body is not `application/json` in UTF-8, or it is sent twice',
    'Send one JSON-RPC message as `application/json`.',
  ),
  mcp_encoding: rule(
    'the body has a content encoding',
    'the body has a `Content-Encoding`, but must be readable for authorization',
    'Send the body without `Content-Encoding`.',
  ),
  mcp_json: rule(
    'the body is not JSON that all readers understand alike',
    'the body is not a JSON object in UTF-8, or has a field twice (case aside), a lone surrogate, or more than 64 levels',
    'Send one JSON-RPC message; batches are not accepted here.',
  ),
  mcp_message: rule(
    'the body is not a JSON-RPC 2.0 message',
    'the body is not a JSON-RPC 2.0 message',
    'Send one JSON-RPC message.',
  ),
  mcp_params: rule(
    'params do not fit the method',
    'a field of `params` by which the request is authorized is missing or has the wrong type',
    'Send the parameters that MCP defines for the method.',
  ),
  mcp_field_case: rule(
    'a field differs from a known one by case',
    'a field of the message differs from a known one only by case, which some parsers ignore',
    'Spell the fields as in the MCP specification.',
  ),
  mcp_header_repeated: rule(
    'Mcp-Method or Mcp-Name is sent twice',
    'the header `Mcp-Method` or `Mcp-Name` is sent twice',
    'Send each once.',
  ),
  mcp_header_missing: rule(
    'Mcp-Method or Mcp-Name is missing',
    'the header `Mcp-Method` or `Mcp-Name` is missing, which the protocol version of the request requires',
    'Send both with the values of the body.',
  ),
  mcp_header_mismatch: rule(
    'Mcp-Method or Mcp-Name differs from the body',
    'the header `Mcp-Method` or `Mcp-Name` differs from the body',
    'Send the same values as in the body.',
  ),
} as const satisfies Readonly<Record<string, Rule>>

export type RuleCode = keyof typeof RULES
