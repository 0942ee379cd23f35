import { known, knownOfConnection, type Known, placeIn } from './explained-connection.ts'
import { causeOf, type Compared, type Failure } from './failure.ts'
import { FAILURES, type Fault } from './failures.ts'
import { limitIn, withLimit } from './limit.ts'

/** Why a request failed, for whoever has to do something about it: page, log, `extauth check` and `extauth stdio` say the same. */
export interface Explanation {
  /** The failure's code. */
  readonly reason: string
  /** Whose turn it is. */
  readonly who: string
  /** What happened, as far as it is known. */
  readonly cause: string
  readonly remedy: string
  readonly compared: Compared | undefined
}

const WHO: Readonly<Record<Fault, string>> = {
  caller_token: 'whoever calls',
  caller_rights: 'whoever grants rights to this caller',
  request: 'whoever calls',
  configuration: 'whoever configures the proxy',
  identity_provider: 'whoever runs the identity provider',
  backend: 'whoever runs the backend',
  proxy: 'whoever runs the proxy',
}

/** By the rule that a token breaks, which is the failure's detail. */
const BY_DETAIL: Readonly<Record<string, Known>> = {
  'iss names no provider': known(
    "the token's issuer (iss) is none of the providers",
    'Get a token from one of them, or add a provider with this `issuerUrl`; they are compared byte for byte, a slash at the end too.',
  ),
  'iss is not the issuer of this provider': known(
    "the token's issuer (iss) is another one than the provider's",
    'Set `issuerUrl` to what the issuer writes, byte for byte.',
    'configuration',
  ),
  'aud is missing': known(
    'the token has no audience (aud)',
    'Make the identity provider put the audience of the provider into access tokens (a resource or API setting).',
    'identity_provider',
  ),
  'aud is not the audience of this provider': known(
    'the token is for somebody else (aud)',
    'Ask for a token with this audience (`resource` or `audience` of the request), or set `audience` of the provider to what tokens have.',
  ),
  'exp is missing': known(
    'the token has no end (exp)',
    'Make the identity provider issue tokens that end.',
    'identity_provider',
  ),
  'exp is not a number': known(
    'the end of the token (exp) is no number',
    'The identity provider writes seconds since the epoch.',
    'identity_provider',
  ),
  'exp has passed': known('the token has ended (exp)', 'Get a new token; if they end at once, compare clocks.'),
  'nbf is not a number': known(
    'the beginning of the token (nbf) is no number',
    'The identity provider writes seconds since the epoch.',
    'identity_provider',
  ),
  'nbf is still to come': known(
    'the token begins later (nbf)',
    'Compare the clocks of proxy and identity provider; `toleranceSeconds` allows for up to 60.',
    'configuration',
  ),
  'iat is still to come': known(
    'the token was issued in the future (iat)',
    'Compare the clocks of proxy and identity provider; `toleranceSeconds` allows for up to 60.',
    'configuration',
  ),
  'sub is not a string': known(
    'the subject of the token (sub) is no text',
    'The identity provider writes a text.',
    'identity_provider',
  ),
  'sub is not the subject of this provider': known(
    'the subject of the token (sub) is not the one that this provider takes',
    'Use the token of that subject, or correct `subject` of the provider.',
  ),
  'the signature is wrong': known(
    'the signature was not made by the key that the token names (kid)',
    'Take the token as it was issued. Two issuers of one name, as after a restored backup, have different keys.',
  ),
  'no key of the provider fits': known(
    'the key that the token names (kid) is not among the keys of the provider',
    'Get a new token: the key was replaced. If new ones fail too, compare `jwksUrl` with `jwks_uri` of the issuer.',
  ),
  'several keys of the provider fit and no kid says which': known(
    'the token names no key (kid), and several fit',
    'Make the issuer write `kid` into its tokens.',
    'identity_provider',
  ),
  'alg is not accepted': known(
    'the algorithm of the signature (alg) is none that is accepted; HMAC and none never are',
    'Make the issuer sign with RS256, ES256 or EdDSA.',
    'identity_provider',
  ),
  'typ says that it is no access token': known(
    'it is another kind of token (typ), such as an ID or logout token',
    'Send the access token.',
  ),
  'typ is not at+jwt': known(
    'it is another kind of token (typ), such as an ID token',
    'Send the access token that the authorization server issued.',
  ),
  'crit names an extension that is not understood': known(
    'the token wants an extension that is not understood (crit)',
    'Make the issuer leave `crit` out.',
    'identity_provider',
  ),
  'sender-constrained tokens are not supported': known(
    'the token is bound to a key of the client (cnf: DPoP, mutual TLS), and the proxy does not check such bindings',
    'Let the client ask for a bearer token, or set `allowBoundTokens: true` on the route.',
    'configuration',
  ),
  'kid is not a string': known(
    'the name of the key (kid) is no text',
    'The identity provider writes a text.',
    'identity_provider',
  ),
  'the token is a JWT that is not well-formed': known(
    'the token looks like a JWT and can not be read as one',
    'Take the token whole: it may have been cut, wrapped or quoted.',
  ),
  'no provider takes tokens of this kind': known(
    'the token is opaque, and no provider is asked about those',
    'Set `introspectionUrl` of the provider, or make the issuer give JWTs.',
    'configuration',
  ),
  'the provider says that the token is not active': known(
    'the provider says that the token is not active: it has ended, was revoked, or is of another server',
    'Log in again; if new tokens fail too, compare `introspectionUrl` and the client that asks.',
  ),
  'it is not signed by our own issuer': known(
    'the token says that it is ours, and was not signed with our keys',
    'Log in again: the keys of the authorization server were replaced.',
  ),
  'not a bearer token': known(
    'there is something after Bearer that is no token',
    'Send the token alone: no quotes, no line ends, no second Bearer.',
  ),
  'the token is longer than 16 KiB': known(
    'the token is longer than 16 KiB',
    'Put less into it: groups are mostly what makes tokens long.',
    'identity_provider',
  ),
  'more than one Authorization header': known(
    'there is more than one Authorization header',
    'Send one; a gateway in between may have added its own.',
  ),
  'the keys are not fetched again yet': known(
    'the key that the token names (kid) is new, and keys were fetched a moment ago',
    'Wait some seconds: they are fetched again.',
    'identity_provider',
  ),
  'the client does not take its answer': known(
    'the client does not take its answer: it reads less than 240 bytes a second',
    'Look at the client, and at what lies between.',
  ),
  'the body did not arrive in time': known('the body did not arrive in time', 'The client sent it too slowly.'),
  'nothing more of the body came': known('nothing more of the body came', 'The client stopped sending.'),
  'foreign redirect': known(
    'the backend answers with a redirect to another origin',
    'Set `target` to where it leads; credentials go nowhere else by themselves.',
    'configuration',
  ),
}

/** By how the failure's detail begins, which goes on with what was answered and says itself what happened. */
const BY_BEGINNING: readonly (readonly [RegExp, Pick<Known, 'remedy' | 'who'>])[] = [
  [
    /^key set:? (?:answered|the answer|redirects)/,
    { remedy: 'Set `jwksUrl` to `jwks_uri` of the discovery document, or leave it out.', who: 'configuration' },
  ],
  [
    /^discovery document:? (?:answered|the answer|redirects|it )/,
    {
      remedy:
        'Set `issuerUrl` to what the issuer writes into its tokens; its metadata are below `/.well-known/` there.',
      who: 'configuration',
    },
  ],
  [
    /^token endpoint answered (?:\d+ invalid_client|401 unauthorized_client)\b/,
    { remedy: 'Compare `clientId`, its secret and the kind of client authentication with what is registered there.' },
  ],
  [
    /^token endpoint answered \d+ unsupported_grant_type\b/,
    { remedy: 'Allow this grant at the provider (token exchange is mostly off at first), or correct the token URL.' },
  ],
  [
    /^token endpoint answered \d+ unauthorized_client\b/,
    { remedy: 'Allow this grant for the client at the provider.' },
  ],
  [
    /^token endpoint answered \d+ invalid_target\b/,
    { remedy: 'Compare `audience` and `resource` of the config with what the provider knows.', who: 'configuration' },
  ],
]

/** Why it failed and who has to do what. What is not known more exactly is what the error table says. */
export function explain(failure: Failure): Explanation {
  const { code, detail, cause, compared } = failure
  const row = FAILURES[code]
  const beneath = causeOf(cause)
  const rule = detail === undefined ? undefined : BY_DETAIL[detail]
  const network = knownOfConnection(cause)
  const found = rule ?? network ?? BY_BEGINNING.find(([beginning]) => beginning.test(detail ?? ''))?.[1]
  const own = detail ?? row.sentence.replace(/\.$/, '')
  const said = rule?.cause ?? (network === undefined ? own : ofConnection(network, failure))
  const told = {
    reason: code,
    who: WHO[found?.who ?? row.fault],
    cause: beneath.code === undefined || said.includes(beneath.code) ? said : `${said} (${beneath.code})`,
    // That the request may have been processed is more than how its connection ended.
    remedy: code === 'backend_no_answer' ? row.remedy : (found?.remedy ?? row.remedy),
    compared,
  }
  return withLimit(told, failure.limit ?? limitIn(cause))
}

/** How a connection failed, and which: the name of a route does not tell where it leads. */
function ofConnection({ cause }: Known, failure: Failure): string {
  const place = placeIn(failure)
  return [failure.detail, cause, place].filter((part) => part !== undefined).join(': ')
}
