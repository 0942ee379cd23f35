import type { Fault } from './failures.ts'

/** What is known of a failure beyond its code. */
export interface Rule {
  /** What happened, for the log. */
  readonly detail: string
  /** The same for the person who must act; undefined where the failure's own detail says more. */
  readonly cause: string | undefined
  readonly remedy: string
  /** Who must act, where it is not who the failure's code says. */
  readonly who?: Fault
}

const rule = (detail: string, cause: string | undefined, remedy: string, who?: Fault): Rule => ({
  detail,
  cause,
  remedy,
  ...(who === undefined ? {} : { who }),
})

/**
 * The rules that a request, a token or a response can break, by the code that a failure carries (`Failure.rule`). The log, the
 * inspector, `extauth check` and `extauth stdio` take their words from here.
 */
export const RULES = {
  iss_unknown: rule(
    'iss names no provider',
    "the token's issuer (iss) is none of the providers",
    'Get a token from one of them, or add a provider with this `issuerUrl`; they are compared byte for byte, a slash at the end too.',
  ),
  iss_other: rule(
    'iss is not the issuer of this provider',
    "the token's issuer (iss) differs from the provider's",
    'Set `issuerUrl` to what the issuer writes, byte for byte.',
    'configuration',
  ),
  aud_missing: rule(
    'aud is missing',
    'the token has no audience (aud)',
    'Make the identity provider put the audience of the provider into access tokens (a resource or API setting).',
    'identity_provider',
  ),
  aud_other: rule(
    'aud is not the audience of this provider',
    'the token is for another audience (aud)',
    'Ask for a token with this audience (`resource` or `audience` of the request), or set `audience` of the provider to what tokens have.',
  ),
  exp_missing: rule(
    'exp is missing',
    'the token has no expiry (exp)',
    'Make the identity provider issue tokens that end.',
    'identity_provider',
  ),
  exp_malformed: rule(
    'exp is not a number',
    'the expiry of the token (exp) is not a number',
    'The identity provider writes seconds since the epoch.',
    'identity_provider',
  ),
  exp_passed: rule(
    'exp has passed',
    'the token has expired (exp)',
    'Get a new token; if they end at once, compare clocks.',
  ),
  nbf_malformed: rule(
    'nbf is not a number',
    'the start of the token (nbf) is not a number',
    'The identity provider writes seconds since the epoch.',
    'identity_provider',
  ),
  nbf_early: rule(
    'nbf is still to come',
    'the token is not valid yet (nbf)',
    'Compare the clocks of proxy and identity provider; `toleranceSeconds` allows for up to 60.',
    'configuration',
  ),
  iat_early: rule(
    'iat is still to come',
    'the token was issued in the future (iat)',
    'Compare the clocks of proxy and identity provider; `toleranceSeconds` allows for up to 60.',
    'configuration',
  ),
  sub_malformed: rule(
    'sub is not a string',
    'the subject of the token (sub) is not a string',
    'The identity provider writes a text.',
    'identity_provider',
  ),
  sub_other: rule(
    'sub is not the subject of this provider',
    'the subject of the token (sub) is not the one that this provider takes',
    'Use the token of that subject, or correct `subject` of the provider.',
  ),
  signature_wrong: rule(
    'the signature is wrong',
    'the signature was not made by the key that the token names (kid)',
    'Take the token as it was issued. Two issuers of one name, as after a restored backup, have different keys.',
  ),
  key_unknown: rule(
    'no key of the provider fits',
    'the key that the token names (kid) is not among the keys of the provider',
    'Get a new token: the key was replaced. If new ones fail too, compare `jwksUrl` with `jwks_uri` of the issuer.',
  ),
  key_ambiguous: rule(
    'several keys of the provider fit and no kid says which',
    'the token names no key (kid), and several fit',
    'Make the issuer write `kid` into its tokens.',
    'identity_provider',
  ),
  alg_refused: rule(
    'alg is not accepted',
    'the algorithm of the signature (alg) is none that is accepted; HMAC and none never are',
    'Make the issuer sign with RS256, ES256 or EdDSA.',
    'identity_provider',
  ),
  typ_other: rule(
    'typ says that it is no access token',
    'it is another kind of token (typ), such as an ID or logout token',
    'Send the access token.',
  ),
  typ_not_at_jwt: rule(
    'typ is not at+jwt',
    'it is another kind of token (typ), such as an ID token',
    'Send the access token that the authorization server issued.',
  ),
  crit_unknown: rule(
    'crit names an extension that is not understood',
    'the token wants an extension that is not understood (crit)',
    'Make the issuer leave `crit` out.',
    'identity_provider',
  ),
  cnf_unsupported: rule(
    'sender-constrained tokens are not supported',
    'the token is bound to a key of the client (cnf: DPoP, mutual TLS), and the proxy does not check such bindings',
    'Let the client ask for a bearer token, or set `allowBoundTokens: true` on the route.',
    'configuration',
  ),
  kid_malformed: rule(
    'kid is not a string',
    'the key ID (kid) is not a string',
    'The identity provider writes a text.',
    'identity_provider',
  ),
  jwt_malformed: rule(
    'the token is a JWT that is not well-formed',
    'the token looks like a JWT and can not be read as one',
    'Take the token whole: it may have been cut, wrapped or quoted.',
  ),
  opaque_unsupported: rule(
    'no provider takes tokens of this kind',
    'the token is opaque, and no provider is asked about those',
    'Set `introspectionUrl` of the provider, or make the issuer give JWTs.',
    'configuration',
  ),
  token_inactive: rule(
    'the provider says that the token is not active',
    'the provider says that the token is not active: it has ended, was revoked, or is of another server',
    'Log in again; if new tokens fail too, compare `introspectionUrl` and the client that asks.',
  ),
  own_signature_wrong: rule(
    'it is not signed by our own issuer',
    'the token says that it is ours, and was not signed with our keys',
    'Log in again: the keys of the authorization server were replaced.',
  ),
  bearer_malformed: rule(
    'not a bearer token',
    'there is something after Bearer that is no token',
    'Send the token alone: no quotes, no line ends, no second Bearer.',
  ),
  token_too_long: rule(
    'the token is longer than 16 KiB',
    'the token is longer than 16 KiB',
    'Put less into it: groups are mostly what makes tokens long.',
    'identity_provider',
  ),
  authorization_repeated: rule(
    'more than one Authorization header',
    'there is more than one Authorization header',
    'Send one; a gateway in between may have added its own.',
  ),
  keys_fetched_recently: rule(
    'the keys are not fetched again yet',
    'the key that the token names (kid) is new, and keys were fetched a moment ago',
    'Wait some seconds: they are fetched again.',
    'identity_provider',
  ),
  client_reads_slowly: rule(
    'the client does not take its answer',
    'the client does not take its answer: it reads less than 240 bytes a second',
    'Look at the client, and at what lies between.',
  ),
  body_late: rule(
    'the body did not arrive in time',
    'the body did not arrive in time',
    'The client sent it too slowly.',
  ),
  body_stopped: rule('nothing more of the body came', 'nothing more of the body came', 'The client stopped sending.'),
  redirect_foreign: rule(
    'foreign redirect',
    'the backend answers with a redirect to another origin',
    'Set `target` to where it leads; credentials go nowhere else by themselves.',
    'configuration',
  ),
  session_revoked: rule(
    'the session of the token was revoked',
    'the session of the token was revoked',
    'Log in again.',
  ),
  session_unknown: rule(
    'the session of the token is nowhere',
    'the authorization server has no session for the token',
    'Log in again.',
  ),
  key_set_unusable: rule(
    'the key set is not usable',
    undefined,
    'Set `jwksUrl` to `jwks_uri` of the discovery document, or leave it out.',
    'configuration',
  ),
  discovery_unusable: rule(
    'the discovery document is not usable',
    undefined,
    'Set `issuerUrl` to what the issuer writes into its tokens; its metadata are below `/.well-known/` there.',
    'configuration',
  ),
  discovery_other_issuer: rule(
    'the discovery document is for another issuer',
    undefined,
    'Write `issuerUrl` as the document has it, byte for byte, trailing slash included: tokens name that issuer.',
    'configuration',
  ),
  mcp_method: rule(
    'a body on another method than POST, or another method',
    'requests of this route are authorized by their body, and only POST has one here',
    'Send MCP messages with POST; GET and DELETE have no body.',
  ),
  mcp_media_type: rule(
    'the body is not application/json',
    'the media type of the body is not `application/json` in UTF-8, or it is sent twice',
    'Send one JSON-RPC message as `application/json`.',
  ),
  mcp_encoding: rule(
    'the body has a content encoding',
    'the body has a `Content-Encoding`, and is authorized by what it says without one',
    'Send the body as it is.',
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
    'a field of the message differs from a known one by case only, and some readers take it for that one',
    'Spell the fields as MCP does.',
  ),
  mcp_header_repeated: rule(
    'Mcp-Method or Mcp-Name is sent twice',
    'the header `Mcp-Method` or `Mcp-Name` is sent twice',
    'Send each once.',
  ),
  mcp_header_mismatch: rule(
    'Mcp-Method or Mcp-Name differs from the body',
    'the header `Mcp-Method` or `Mcp-Name` differs from what the body says',
    'Send the values of the body.',
  ),
} as const satisfies Readonly<Record<string, Rule>>

export type RuleCode = keyof typeof RULES
