import { CLIENTS, FOR_ISSUER, secret, WRONG_CLIENTS } from './examples-clients.ts'
import { XAA_EXAMPLES } from './examples-xaa.ts'

/** A spec, and who must refuse it. `files` is what `validate` checks; the others follow where their language can say it. */
export interface Example {
  readonly name: string
  readonly spec: unknown
  /** Part of the problem that files get; absent for a valid spec. */
  readonly problem?: string
  /** Validators that can't express the rule (JSON Schema, or a structural schema with CEL). */
  readonly unseenBy?: readonly ('json schema' | 'crd')[]
}

const arn = 'arn:aws:iam::123456789012:role/reader'
const nobodyElse = ['json schema', 'crd'] as const

const bearer = (more: object) => ({ type: 'bearerToken', bearerToken: { tokenSecretRef: secret }, ...more })
const header = (headerName: unknown, valueSecretRef: unknown = secret) => ({
  type: 'headerInjection',
  headerInjection: { headerName, valueSecretRef },
})
const exchange = (more: object) => ({
  type: 'tokenExchange',
  tokenExchange: { tokenUrl: 'https://idp.example.com/token', audience: 'backend', ...more },
})
const credentials = (more: object) => ({
  type: 'clientCredentials',
  clientCredentials: { tokenUrl: 'https://idp.example.com/token', clientId: 'us', clientSecretRef: secret, ...more },
})
const acting = (more: object = {}, beside: object = {}) =>
  exchange({ actor: { clientCredentials: credentials(more).clientCredentials }, ...beside })
const obo = (more: object) => ({
  type: 'obo',
  obo: {
    tenantId: 'contoso.onmicrosoft.com',
    clientId: 'us',
    clientSecretRef: secret,
    audience: 'api://backend',
    ...more,
  },
})
const oboAs = (clientAuth: object, more: object = {}) =>
  obo({ clientId: undefined, clientSecretRef: undefined, clientAuth, ...more })
const sts = (more: object, type = 'cloudSts') => ({ type, [type]: { region: 'eu-central-1', ...more } })
const role = (more: object) => sts({ roleMappings: [{ roleArn: arn, ...more }] })
const template = (roleArnTemplate: unknown, more: object = {}) =>
  role({ roleArn: undefined, roleArnTemplate, claim: 'a', ...more })
const from = (source: unknown, more: object = { fallbackRoleArn: arn }) => sts({ source, ...more })
const chained = (more: object = {}) => ({
  type: 'role',
  through: { roleArn: arn, source: { type: 'ambient' }, ...more },
})
const mapped = (more: object) => from({ type: 'ambient' }, { roleMappings: [{ roleArn: arn, claim: 'a', ...more }] })
const accounts = { allowedAccounts: ['111111111111'] }

// prettier-ignore
const WRONG_CREDENTIALS: readonly (readonly [name: string, value: unknown])[] = [
  ['tokenUrl', 'a/b'], ['tokenUrl', 'https://a/b#c'], ['clientId', ''], ['clientId', 7], ['clientSecretRef', 'text'], ['audience', ''], ['audience', ['a', 'b']], ['resource', 'backend'], ['resource', 'urn:a#b'], ['scopes', 'read'], ['additionalParams', { tenant: 1 }], ['additionalParams', ['a']], ['additionalParams', { '': 'a' }], ['externalTokenHeaderName', 'Host'], ['externalTokenHeaderName', 'a b'], ['cacheSkew', '5'], ['cacheSkew', '-5s'], ['cacheSkew', 30], ['clientAuthMethod', 'none'], ['insecureAllowHttp', 'yes'], ['subjectTokenType', 'jwt'],
]

// prettier-ignore
const WRONG_OBO: readonly (readonly [name: string, value: unknown])[] = [
  ['tenantId', ''], ['tenantId', 'common'], ['tenantId', 'organizations'], ['tenantId', 'consumers'], ['tenantId', 'a/b.c'], ['tenantId', '..'], ['tenantId', '-a.com'], ['tenantId', '11111111-2222-3333-4444-55555555555'], ['tenantId', 7], ['tenantId', `${'a'.repeat(250)}.com`], ['authority', 'login.microsoftonline.com'], ['authority', 'http://login.microsoftonline.com'], ['authority', 'https://a/b?c=d'], ['authority', 'https://a/#b'], ['authority', 'https://u:p@a'], ['authority', ''], ['clientId', ''], ['clientId', 7], ['clientSecretRef', 'text'], ['clientSecretRef', { name: 'a' }], ['audience', ''], ['audience', 'a b'], ['audience', ['a']], ['audience', 'a'.repeat(249)], ['scopes', 'read'], ['scopes', ['a b']], ['scopes', ['']], ['scopes', ['a'.repeat(257)]], ['scopes', Array.from({ length: 21 }, (_, index) => `s${index}`)], ['subjectTokenProviderName', ''], ['subjectTokenProviderName', 'A'], ['subjectTokenProviderName', 'a-'], ['subjectTokenProviderName', 'a'.repeat(64)], ['cacheSkew', '5'], ['cacheSkew', '-5s'], ['cacheSkew', 30], ['caCertPath', ''], ['tokenUrl', 'https://a/b'], ['clientAuthMethod', 'client_secret_basic'], ['externalTokenHeaderName', 'X-Token'],
]

// prettier-ignore
export const OUTGOING_EXAMPLES: readonly Example[] = [
  { name: 'unauthenticated', spec: { type: 'unauthenticated' } },
  { name: 'no type', spec: {}, problem: 'spec.type  missing' },
  { name: 'a misspelled type', spec: { type: 'bearertoken' }, problem: 'did you mean "bearerToken"' },
  { name: 'unauthenticated with a sub-object', spec: { ...bearer({}), type: 'unauthenticated' }, problem: '"bearerToken" must be absent when type is "unauthenticated"' },
  { name: 'a type without its sub-object', spec: { type: 'bearerToken' }, problem: 'missing, "bearerToken" is required' },
  { name: 'two sub-objects', spec: bearer({ upstreamInject: { providerName: 'x' } }), problem: '"upstreamInject" must be absent' },
  { name: 'an unknown field', spec: bearer({ bearerTokn: {} }), problem: 'did you mean "bearerToken"' },
  { name: 'a bearer token', spec: bearer({}) },
  { name: 'a bearer token inline', spec: { type: 'bearerToken', bearerToken: { token: 'abc' } }, problem: 'spec.bearerToken.tokenSecretRef  missing' },
  { name: 'a secret reference without key', spec: { type: 'bearerToken', bearerToken: { tokenSecretRef: { name: 'a' } } }, problem: 'tokenSecretRef.key  missing' },
  { name: 'a secret name with capitals', spec: { type: 'bearerToken', bearerToken: { tokenSecretRef: { name: 'A', key: 'k' } } }, problem: 'lower-case' },
  { name: 'a secret key that climbs', spec: { type: 'bearerToken', bearerToken: { tokenSecretRef: { name: 'a', key: '..data' } } }, problem: 'not starting with ".."' },
  { name: 'a secret key with a slash', spec: { type: 'bearerToken', bearerToken: { tokenSecretRef: { name: 'a', key: 'a/b' } } }, problem: 'not starting with ".."' },
  { name: 'a secret key that is hidden', spec: { type: 'bearerToken', bearerToken: { tokenSecretRef: { name: 'a', key: '.npmrc' } } } },
  { name: 'upstreamInject', spec: { type: 'upstreamInject', upstreamInject: { providerName: 'github' } } },
  { name: 'upstreamInject without a provider', spec: { type: 'upstreamInject', upstreamInject: { providerName: '' } }, problem: 'too short' },

  ...['X-Api-Key', 'authorization', 'x_api_key', 'Cookie'].map((name) => ({ name: `header ${name}`, spec: header(name) })),
  ...['', 'a b', 'a:b', 'a\nb', 'ä'].map((name) => ({ name: `no header name: ${JSON.stringify(name)}`, spec: header(name), problem: 'spec.headerInjection.headerName' })),
  ...['Host', 'content-length', 'Transfer-Encoding', 'transfer_encoding', 'CONNECTION', 'Keep-Alive', 'TE', 'Trailer', 'Upgrade', 'Proxy-Authorization', 'Proxy-Authenticate', 'Proxy-Connection', 'Expect', 'Mcp-Session-Id', 'mcp_method', 'MCP-Param-x']
    .map((name) => ({ name: `reserved header ${name}`, spec: header(name), problem: 'not framing, hop-by-hop, Host or Mcp-*' })),

  { name: 'a token exchange', spec: exchange({}) },
  { name: 'a token exchange with everything', spec: exchange({ clientId: 'a', clientSecretRef: secret, scopes: ['read'], externalTokenHeaderName: 'X-Token', subjectTokenType: 'urn:ietf:params:oauth:token-type:jwt', resource: 'https://api.example.com', actorTokenSecretRef: secret, actorTokenType: 'jwt', requestedTokenType: 'jwt', clientAuthMethod: 'client_secret_post', caCertPath: './ca.pem', insecureAllowHttp: false }) },
  { name: 'a token exchange with what the specification lets be empty', spec: exchange({ externalTokenHeaderName: '', subjectProviderName: '', subjectTokenType: '' }) },
  ...['access_token', 'id_token', 'jwt', 'urn:ietf:params:oauth:token-type:access_token', 'urn:ietf:params:oauth:token-type:id_token'].map((subjectTokenType) => ({ name: `subject token type ${subjectTokenType}`, spec: exchange({ subjectTokenType }) })),
  ...['refresh_token', 'JWT', 'urn:ietf:params:oauth:token-type:saml2', ' jwt'].map((subjectTokenType) => ({ name: `no subject token type: ${subjectTokenType}`, spec: exchange({ subjectTokenType }), problem: 'spec.tokenExchange.subjectTokenType' })),
  ...['https://api.example.com/mcp?a=1', 'urn:example:api', 'api://0b1c2d3e-0000-4000-8000-000000000000', 'api://crm/.default', 'tag:example.com,2026:api', 'spiffe://example.org/backend', 'urn:x:%C3%A4', 'HTTPS-like+x.1:y', 'https://[::1]:8443/'].map((resource) => ({ name: `resource ${resource}`, spec: exchange({ resource }) })),
  ...['', 'backend', '/mcp', '//host/mcp', 'urn:', 'urn:a b', 'urn:a#b', 'https://a/b#c', '1urn:a', 'urn:ä', 'urn:%4', 'urn:a\nb', 'urn:<a>'].map((resource) => ({ name: `no resource: ${JSON.stringify(resource)}`, spec: exchange({ resource }), problem: 'spec.tokenExchange.resource' })),
  ...['https://user:pw@a/b', 'https://', 'HTTPS:a', 'https://a:99999/'].map((resource) => ({ name: `no resource: ${resource}`, spec: exchange({ resource }), problem: 'expected a URL without user information', unseenBy: ['json schema' as const] })),
  { name: 'an exchange without audience', spec: { type: 'tokenExchange', tokenExchange: { tokenUrl: 'https://a/b' } }, problem: 'audience  missing' },
  ...['ftp://a/b', 'https://user:pw@a/b', 'https://a/b#c', 'a/b', 'https://', 'https://a/b c', 'javascript:alert(1)'].map((tokenUrl) => ({ name: `no token URL: ${tokenUrl}`, spec: exchange({ tokenUrl }), problem: 'spec.tokenExchange.tokenUrl' })),
  { name: 'a token URL with a port that is none', spec: exchange({ tokenUrl: 'https://a:99999/' }), problem: 'expected an http or https URL' },
  { name: 'a plain-http token URL (it loads)', spec: exchange({ tokenUrl: 'http://idp.example.com/token' }) },
  { name: 'a secret without client', spec: exchange({ clientSecretRef: secret }), problem: '"clientSecretRef" needs "clientId"' },
  { name: 'an actor type without actor', spec: exchange({ actorTokenType: 'jwt' }), problem: '"actorTokenType" needs' },
  { name: 'an actor', spec: acting() },
  { name: 'an actor with everything', spec: acting({ issuerUrl: 'https://idp.example.com', tokenUrl: undefined, clientId: undefined, clientSecretRef: undefined, clientAuth: { method: 'privateKeyJwt', clientId: 'agent', key: { secretRef: secret } }, scopes: ['act'], audience: 'idp', resource: 'urn:example:idp', additionalParams: { tenant: 'a' }, cacheSkew: '1m', caCertPath: './ca.pem', insecureAllowHttp: false }) },
  { name: 'an actor without a grant', spec: exchange({ actor: {} }), problem: 'spec.tokenExchange.actor.clientCredentials  missing' },
  { name: 'an actor by a name', spec: exchange({ actor: 'agent' }), problem: 'spec.tokenExchange.actor' },
  { name: 'an actor said twice', spec: acting({}, { actorTokenSecretRef: secret }), problem: '"actorTokenSecretRef" and "actor" are mutually exclusive, expected only one of them' },
  { name: 'an actor with a type', spec: acting({}, { actorTokenType: 'jwt' }), problem: 'leave "actorTokenType" out: the token of "actor" is an access_token' },
  ...([
    ['a header', { externalTokenHeaderName: 'X-Token' }, 'externalTokenHeaderName'], ['no place', { tokenUrl: undefined }, 'expected exactly one of "tokenUrl" and "issuerUrl"'],
    ['a place that is none', { tokenUrl: 'a/b' }, 'actor.clientCredentials.tokenUrl'], ['no client', { clientId: undefined }, 'actor.clientCredentials.clientId  missing'],
    ['no secret', { clientSecretRef: undefined }, 'clientSecretRef  missing'], ['a reserved parameter', { additionalParams: { scope: 'a' } }, 'expected none of the parameters'],
  ] as const).map(([name, more, problem]) => ({ name: `an actor's grant with ${name}`, spec: acting(more), problem, unseenBy: ['crd' as const] })),
  { name: 'private_key_jwt', spec: exchange({ clientAuthMethod: 'private_key_jwt', clientId: 'a', clientKeySecretRef: secret }) },
  { name: 'private_key_jwt without key', spec: exchange({ clientAuthMethod: 'private_key_jwt', clientId: 'a' }), problem: 'needs "clientId" and "clientKeySecretRef"' },
  { name: 'an unknown client authentication', spec: exchange({ clientAuthMethod: 'client_secret_jwt' }), problem: 'is not known' },
  { name: 'the exchanged token in a reserved header', spec: exchange({ externalTokenHeaderName: 'Host' }), problem: 'not framing' },
  { name: 'a scope with a space', spec: exchange({ scopes: ['a b'] }), problem: 'spec.tokenExchange.scopes[0]' },

  { name: 'client credentials', spec: credentials({}) },
  { name: 'client credentials with everything', spec: credentials({ audience: 'backend', resource: 'urn:example:api', scopes: ['read'], additionalParams: { tenant: 'a', claims: '{}' }, externalTokenHeaderName: 'X-Token', cacheSkew: '1m30s', clientAuthMethod: 'client_secret_post', caCertPath: './ca.pem', insecureAllowHttp: true }) },
  { name: 'client credentials with a key', spec: credentials({ clientSecretRef: undefined, clientAuthMethod: 'private_key_jwt', clientKeySecretRef: secret }) },
  { name: 'client credentials without their object', spec: { type: 'clientCredentials' }, problem: 'missing, "clientCredentials" is required' },
  { name: 'client credentials without tokenUrl', spec: credentials({ tokenUrl: undefined }), problem: 'expected exactly one of "tokenUrl" and "issuerUrl"' },
  { name: 'client credentials with both places', spec: credentials({ issuerUrl: 'https://idp.example.com' }), problem: 'expected exactly one of "tokenUrl" and "issuerUrl"' },
  { name: 'client credentials by discovery', spec: credentials({ tokenUrl: undefined, issuerUrl: 'https://idp.example.com/realms/a' }) },
  { name: 'client credentials without clientId', spec: credentials({ clientId: undefined }), problem: 'spec.clientCredentials.clientId  missing' },
  { name: 'client credentials of a public client', spec: credentials({ clientId: undefined, clientSecretRef: undefined, clientAuth: { method: 'none', clientId: 'us' } }), problem: 'another method than "none"' },
  { name: 'client credentials without a secret', spec: credentials({ clientSecretRef: undefined }), problem: 'spec.clientCredentials.clientSecretRef  missing, needed for this "clientAuthMethod"' },
  { name: 'client credentials with a key that nothing uses instead of the secret', spec: credentials({ clientSecretRef: undefined, clientKeySecretRef: secret }), problem: 'clientSecretRef  missing' },
  { name: 'client credentials without a key', spec: credentials({ clientAuthMethod: 'private_key_jwt' }), problem: 'needs "clientId" and "clientKeySecretRef"' },
  ...WRONG_CREDENTIALS.map(([name, value]) => ({ name: `no ${name} of client credentials: ${JSON.stringify(value)}`, spec: credentials({ [name]: value }), problem: `spec.clientCredentials.${name}` })),
  { name: 'a cacheSkew that is longer than timers', spec: credentials({ cacheSkew: '597h' }), problem: 'at most 596h', unseenBy: ['json schema'] },
  ...['grant_type', 'client_id', 'client_secret', 'client_assertion', 'client_assertion_type', 'scope', 'audience', 'resource'].map((name) => ({ name: `the reserved parameter ${name}`, spec: credentials({ additionalParams: { [name]: 'a' } }), problem: 'expected none of the parameters that the proxy sets itself' })),

  ...XAA_EXAMPLES,

  ...CLIENTS.map(([name, clientAuth]) => ({ name: `a client with ${name}`, spec: exchange({ clientAuth }) })),
  ...CLIENTS.filter(([, { method }]) => method !== 'none').map(([name, clientAuth]) => ({ name: `a client of its own with ${name}`, spec: credentials({ clientId: undefined, clientSecretRef: undefined, clientAuth }) })),
  ...[exchange({ clientAuth: FOR_ISSUER }), credentials({ clientId: undefined, clientSecretRef: undefined, clientAuth: FOR_ISSUER }), oboAs(FOR_ISSUER)].map((spec) => ({ name: `an issuer to name that nothing discovers: ${spec.type}`, spec, problem: 'no issuer is discovered here' })),
  { name: 'an issuer to name that is discovered', spec: credentials({ tokenUrl: undefined, issuerUrl: 'https://idp.example.com', clientId: undefined, clientSecretRef: undefined, clientAuth: FOR_ISSUER }) },
  ...WRONG_CLIENTS.map(([name, clientAuth, problem]) => ({ name: `no client: ${name}`, spec: exchange({ clientAuth }), problem: `spec.tokenExchange.clientAuth${problem}` })),
  ...[{ clientId: 'us' }, { clientId: 'us', clientSecretRef: secret }, { clientId: 'us', clientKeySecretRef: secret }, { clientAuthMethod: 'client_secret_post' }].map((flat) => ({ name: `a client said twice: ${Object.keys(flat).join(', ')}`, spec: exchange({ ...flat, clientAuth: { method: 'none', clientId: 'us' } }), problem: 'expected only one of the two forms' })),

  { name: 'on behalf of', spec: obo({}) },
  { name: 'on behalf of, with everything', spec: obo({ tenantId: '11111111-2222-3333-4444-5555555555AA', authority: 'https://login.microsoftonline.us/path', scopes: ['api://backend/read', 'api://backend/write'], subjectTokenProviderName: 'entra', cacheSkew: '1m30s', caCertPath: './ca.pem' }) },
  { name: 'on behalf of, with scopes alone', spec: obo({ audience: undefined, scopes: ['api://backend/read'] }) },
  { name: 'on behalf of, with a secret in the record', spec: oboAs({ method: 'clientSecretPost', clientId: 'us', secretRef: secret }) },
  { name: 'on behalf of, with a certificate', spec: oboAs({ method: 'privateKeyJwt', clientId: 'us', key: { secretRef: secret, certificateSecretRef: secret } }) },
  { name: 'on behalf of, with a federated token', spec: oboAs({ method: 'tokenFile', clientId: 'us', tokenFile: {} }) },
  { name: 'on behalf of, without its object', spec: { type: 'obo' }, problem: 'missing, "obo" is required' },
  { name: 'on behalf of, without a tenant', spec: obo({ tenantId: undefined }), problem: 'spec.obo.tenantId  missing' },
  { name: 'on behalf of, without a client', spec: obo({ clientId: undefined, clientSecretRef: undefined }), problem: 'spec.obo.clientId  missing, needed where there is no "clientAuth"' },
  { name: 'on behalf of, without a secret', spec: obo({ clientSecretRef: undefined }), problem: 'spec.obo.clientSecretRef  missing, needed where there is no "clientAuth"' },
  { name: 'on behalf of, with nothing asked for', spec: obo({ audience: undefined }), problem: 'spec.obo.audience  missing, needed where there are no "scopes"' },
  { name: 'on behalf of, with no scopes and no audience', spec: obo({ audience: undefined, scopes: [] }), problem: 'spec.obo.audience  missing' },
  { name: 'on behalf of, with both ways to say who we are', spec: obo({ clientAuth: { method: 'clientSecretPost', clientId: 'us', secretRef: secret } }), problem: 'expected only one of the two forms' },
  ...[{ method: 'clientSecretBasic', secretRef: secret }, { method: 'tlsClient', tls: { certificateSecretRef: secret, keySecretRef: secret } }, { method: 'none' }, { method: 'tokenFile', tokenFile: { type: 'jwt-spiffe' } }].map((how) => ({ name: `on behalf of, with ${JSON.stringify(how)}`, spec: oboAs({ clientId: 'us', ...how }), problem: 'Entra ID takes no other here' })),
  { name: 'on behalf of, with a federated token without a path', spec: oboAs({ method: 'tokenFile', tokenFile: {} }), problem: 'Entra ID takes no other here' },
  ...WRONG_OBO.map(([name, value]) => ({ name: `no ${name} on behalf of: ${JSON.stringify(value).slice(0, 80)}`, spec: obo({ [name]: value }), problem: 'spec.obo' })),

  { name: 'a fallback role', spec: sts({ fallbackRoleArn: arn }) },
  { name: 'the alias awsSts', spec: sts({ fallbackRoleArn: arn }, 'awsSts') },
  { name: 'the alias with the other object', spec: { type: 'awsSts', cloudSts: { region: 'eu-central-1', fallbackRoleArn: arn } }, problem: '"cloudSts" must be absent' },
  { name: 'neither role nor mappings', spec: sts({}), problem: 'expected "fallbackRoleArn" or at least one entry' },
  { name: 'empty mappings and no role', spec: sts({ roleMappings: [] }), problem: 'expected "fallbackRoleArn" or at least one entry' },
  { name: 'a mapping by claim', spec: role({ claim: 'admins', priority: 0 }) },
  { name: 'a mapping by matcher', spec: role({ matcher: '"admins" in claims.groups' }) },
  { name: 'claim and matcher', spec: role({ claim: 'a', matcher: 'true' }), problem: 'mutually exclusive' },
  { name: 'neither claim nor matcher', spec: role({}), problem: 'needs "claim" or "matcher"' },
  { name: 'a role by template', spec: template('arn:aws:iam::123456789012:role/mcp-{claims.team}') },
  { name: 'a role by template in an account by claim', spec: template('arn:aws:iam::{claims.account}:role/{claims.https://a.example/unit}/mcp-{claims.a.b}', accounts) },
  { name: 'a template for the account without accounts', spec: template('arn:aws:iam::{claims.account}:role/r'), problem: 'expected "allowedAccounts" exactly where' },
  { name: 'accounts where no claim names one', spec: template('arn:aws:iam::123456789012:role/{claims.team}', accounts), problem: 'expected "allowedAccounts" exactly where' },
  { name: 'accounts beside a role', spec: role({ claim: 'a', ...accounts }), problem: 'expected "allowedAccounts" exactly where' },
  { name: 'a role and a template', spec: template('arn:aws:iam::123456789012:role/{claims.team}', { roleArn: arn }), problem: 'mutually exclusive' },
  { name: 'neither role nor template', spec: template(undefined), problem: 'needs "roleArn" or "roleArnTemplate"' },
  ...['11111111111', '1111111111111', '11111111111a', '*', ''].map((account) => ({ name: `no account: ${account}`, spec: template('arn:aws:iam::{claims.account}:role/r', { allowedAccounts: [account] }), problem: 'allowedAccounts[0]' })),
  { name: 'no accounts at all', spec: template('arn:aws:iam::{claims.account}:role/r', { allowedAccounts: [] }), problem: 'allowedAccounts' },
  ...['arn:{claims.partition}:iam::123456789012:role/r', 'arn:aws:iam::1{claims.account}:role/r', 'arn:aws:iam::{claims.a}{claims.b}:role/r', 'arn:aws:iam::123456789012:{claims.kind}/r', 'arn:aws:iam::123456789012:role/{team}', 'arn:aws:iam::123456789012:role/{claims.}', 'arn:aws:iam::123456789012:role/{claims.team', 'arn:aws:iam::123456789012:role/{claims.{claims.a}}', 'arn:aws:iam::123456789012:role/', 'arn:aws:iam::123456789012:role/a b{claims.team}', '{claims.role}', ''].map((text) => ({ name: `no template: ${text}`, spec: template(text), problem: 'roleArnTemplate' })),
  { name: 'an empty claim', spec: role({ claim: '' }), problem: 'too short' },
  { name: 'a negative priority', spec: role({ claim: 'a', priority: -1 }), problem: 'too small, expected at least 0' },
  { name: 'a priority with decimals', spec: role({ claim: 'a', priority: 1.5 }), problem: 'expected a whole number' },
  { name: 'a matcher that does not parse', spec: role({ matcher: 'claims.a ==' }), problem: 'line 1, column', unseenBy: nobodyElse },
  { name: 'a matcher over an unknown variable', spec: role({ matcher: 'token.a == "x"' }), problem: 'line 1, column', unseenBy: nobodyElse },
  ...['cloud', 'cloud-cn', 'cloud-us-gov', 'aws', 'aws-cn', 'aws-us-gov', 'aws-iso', 'aws-iso-b', 'aws-iso-e', 'aws-iso-f', 'aws-eusc'].map((partition) => ({ name: `partition ${partition}`, spec: sts({ fallbackRoleArn: `arn:${partition}:iam::123456789012:role/path/reader` }) })),
  ...['arn:gcp:iam::123456789012:role/x', 'arn:aws:iam::12345678901:role/x', 'arn:aws:iam::123456789012:user/x', 'arn:aws:iam::123456789012:role/', 'arn:aws:iam::123456789012:role/x y'].map((fallbackRoleArn) => ({ name: `no role: ${fallbackRoleArn}`, spec: sts({ fallbackRoleArn }), problem: 'spec.cloudSts.fallbackRoleArn' })),
  ...['execute-api', 'bedrock-agentcore', 's3', 'my_service.v2'].map((service) => ({ name: `service ${service}`, spec: sts({ service, fallbackRoleArn: arn }) })),
  ...['', 'execute api', 's3/aws4_request', ' s3', 'sé', 's3\n'].map((service) => ({ name: `no service: ${JSON.stringify(service)}`, spec: sts({ service, fallbackRoleArn: arn }), problem: 'spec.cloudSts.service' })),
  ...['', 'eu', 'eu-central', 'EU-central-1', 'eu-central-1a'].map((region) => ({ name: `no region: ${region}`, spec: sts({ region, fallbackRoleArn: arn }), problem: 'spec.cloudSts.region' })),
  ...['cn-north-1', 'us-gov-west-1', 'us-iso-east-1', 'us-isob-east-1', 'us-isof-south-1', 'eu-isoe-west-1', 'eusc-de-east-1'].map((region) => ({ name: `region ${region}`, spec: sts({ region, fallbackRoleArn: arn }) })),
  ...[900, 43_200].map((sessionDuration) => ({ name: `session of ${sessionDuration} s`, spec: sts({ fallbackRoleArn: arn, sessionDuration }) })),
  ...[899, 43_201, '3600', 1e10].map((sessionDuration) => ({ name: `no session duration: ${sessionDuration}`, spec: sts({ fallbackRoleArn: arn, sessionDuration }), problem: 'spec.cloudSts.sessionDuration' })),
  { name: 'a session policy', spec: sts({ fallbackRoleArn: arn, sessionPolicy: '{"Version":"2012-10-17","Statement":[]}', policyArns: ['arn:aws:iam::aws:policy/ReadOnlyAccess'] }) },
  { name: 'a session policy that is no JSON', spec: sts({ fallbackRoleArn: arn, sessionPolicy: 'allow all' }), problem: 'expected a policy as JSON', unseenBy: nobodyElse },

  { name: 'roles by the token of the caller', spec: from({ type: 'callerToken' }) },
  { name: 'roles from the identity of the process', spec: from({ type: 'ambient' }) },
  { name: 'roles from the places that are named', spec: from({ type: 'ambient', chain: ['instance', 'environment', 'webIdentityFile', 'podIdentity', 'container', 'profile'], profile: 'dev', signAs: 'role' }) },
  { name: 'roles behind a role', spec: from(chained({ externalId: 'a:b/c', source: { type: 'ambient', chain: ['profile'], profile: 'dev' } }), { fallbackRoleArn: arn, externalId: 'x_1' }) },
  { name: 'the identity of the process as it is', spec: from({ type: 'ambient' }, {}) },
  { name: 'the identity of the process as it is, said', spec: from({ type: 'ambient', signAs: 'service' }, {}) },
  { name: 'the identity of the process as it is, with roles', spec: from({ type: 'ambient', signAs: 'service' }), problem: 'no role is assumed', unseenBy: ['json schema'] },
  { name: 'roles that are not there', spec: from({ type: 'ambient', signAs: 'role' }, {}), problem: 'expected "fallbackRoleArn" or at least one entry' },
  { name: 'the token of the caller without roles', spec: from({ type: 'callerToken' }, {}), problem: 'expected "fallbackRoleArn" or at least one entry' },
  { name: 'a source without a type', spec: from({}), problem: 'spec.cloudSts.source.type  missing' },
  { name: 'a source that is none', spec: from({ type: 'static' }), problem: 'spec.cloudSts.source.type' },
  { name: 'a place that is none', spec: from({ type: 'ambient', chain: ['sso'] }), problem: 'spec.cloudSts.source.chain[0]' },
  { name: 'no places', spec: from({ type: 'ambient', chain: [] }), problem: 'spec.cloudSts.source.chain' },
  { name: 'a place twice', spec: from({ type: 'ambient', chain: ['instance', 'instance'] }), problem: 'expected each place once' },
  { name: 'a profile that nothing reads', spec: from({ type: 'ambient', chain: ['instance'], profile: 'dev' }), problem: '"profile" needs "profile" in "chain"' },
  { name: 'a profile that is no name', spec: from({ type: 'ambient', chain: ['profile'], profile: 'a b' }), problem: 'expected the name of a profile' },
  { name: 'places of a token', spec: from({ type: 'callerToken', chain: ['instance'] }), problem: '"chain" must be absent unless type is "ambient"' },
  { name: 'signAs of a token', spec: from({ type: 'callerToken', signAs: 'role' }), problem: '"signAs" must be absent unless type is "ambient"' },
  { name: 'a hop without role', spec: from({ type: 'role' }), problem: '"through" is required when type is "role"' },
  { name: 'a role beside places', spec: from({ type: 'ambient', through: chained().through }), problem: '"through" must be absent when type is "ambient"' },
  { name: 'a hop from a token', spec: from(chained({ source: { type: 'callerToken' } })), problem: 'spec.cloudSts.source.through.source.type' },
  ...['a', 'a b', 'x'.repeat(1225), 'ä1'].map((externalId) => ({ name: `no external id: ${externalId.slice(0, 5)}`, spec: from({ type: 'ambient' }, { fallbackRoleArn: arn, externalId }), problem: 'spec.cloudSts.externalId' })),
  { name: 'an external id for a token', spec: sts({ fallbackRoleArn: arn, externalId: 'x1' }), problem: 'AssumeRoleWithWebIdentity takes none', unseenBy: ['json schema'] },
  { name: 'an external id of a service', spec: from({ type: 'ambient' }, { externalId: 'x1' }), problem: '"externalId": needs roles that are assumed', unseenBy: ['json schema'] },
  { name: 'external ids of mappings', spec: from({ type: 'ambient' }, { roleMappings: [{ roleArn: arn, claim: 'a', externalId: 'a:b/c' }], externalId: 'x1' }) },
  { name: 'an external id of a mapping with a token', spec: role({ claim: 'a', externalId: 'x1' }), problem: '"externalId" of "roleMappings"', unseenBy: ['json schema'] },
  ...['a', 'a b', 'x'.repeat(1225)].map((externalId) => ({ name: `no external id of a mapping: ${externalId.slice(0, 5)}`, spec: mapped({ externalId }), problem: 'spec.cloudSts.roleMappings[0].externalId' })),
  { name: 'a session policy of a service', spec: from({ type: 'ambient' }, { sessionPolicy: '{"Statement":[]}' }), problem: 'with this source none is assumed', unseenBy: ['json schema'] },
  { name: 'policies of a service', spec: from({ type: 'ambient', signAs: 'service' }, { policyArns: ['arn:aws:iam::aws:policy/A'] }), problem: 'with this source none is assumed', unseenBy: ['json schema'] },
  { name: 'an unused upstream', spec: from({ type: 'ambient' }, { fallbackRoleArn: arn, subjectProviderName: 'corp' }), problem: 'with another source no token is shown', unseenBy: ['json schema'] },
  { name: 'a chained role of two hours', spec: from(chained(), { fallbackRoleArn: arn, sessionDuration: 7200 }), problem: 'one hour at most', unseenBy: ['json schema'] },
  { name: 'a role of an instance of two hours', spec: from({ type: 'ambient', chain: ['instance', 'podIdentity'] }, { fallbackRoleArn: arn, sessionDuration: 7200 }), problem: 'one hour at most', unseenBy: ['json schema'] },
  { name: 'a role of a user of two hours', spec: from({ type: 'ambient', chain: ['environment'] }, { fallbackRoleArn: arn, sessionDuration: 7200 }) },

  { name: 'tags, source identity and policies', spec: mapped({ sessionTags: [{ key: 'Team', value: 'claims.team' }, { key: 'cost center/1', value: '"a" + claims.b', transitive: true, optional: true }], sourceIdentity: 'claims.email', sessionPolicy: { document: { Statement: [] } }, policyArns: ['arn:aws:iam::aws:policy/ReadOnlyAccess'] }) },
  { name: 'tags and source identity of all roles', spec: from({ type: 'ambient' }, { fallbackRoleArn: arn, sessionTags: [{ key: 'Team', value: 'claims.team' }], sourceIdentity: 'claims.sub' }) },
  { name: 'a policy by template', spec: role({ claim: 'a', sessionPolicy: { template: '{"Statement":[{"Resource":"a/{claims.team}"}]}' } }) },
  { name: 'a policy by template for all roles', spec: sts({ fallbackRoleArn: arn, sessionPolicyTemplate: '{"Statement":{"Resource":"a/{claims.team}","Condition":{"StringLike":{"s3:prefix":["{claims.https://a.example/b}","${aws:userid}"]}}}}' }) },
  { name: 'a policy and a template', spec: sts({ fallbackRoleArn: arn, sessionPolicy: '{"Statement":[]}', sessionPolicyTemplate: '{"Statement":[]}' }), problem: 'sessionPolicyTemplate' },
  { name: 'a template of a service', spec: from({ type: 'ambient' }, { sessionPolicyTemplate: '{"Statement":[]}' }), problem: 'with this source none is assumed', unseenBy: ['json schema'] },
  { name: 'a template that is no JSON', spec: sts({ fallbackRoleArn: arn, sessionPolicyTemplate: '{' }), problem: 'expected a policy as JSON', unseenBy: nobodyElse },
  { name: 'a template that is too long', spec: sts({ fallbackRoleArn: arn, sessionPolicyTemplate: `{"Statement":["${'x'.repeat(4096)}"]}` }), problem: 'spec.cloudSts.sessionPolicyTemplate' },
  ...['{claim.team}', '{ claims.team }', '{claims.team }', '{claims. team}', '{claims}', '{claims.}', '{team}', '${claims.team}', '{{claims.team}}', '{claims.team', 'team}'].map((text) => ({ name: `a placeholder that is none: ${text}`, spec: sts({ fallbackRoleArn: arn, sessionPolicyTemplate: JSON.stringify({ Statement: [{ Resource: `a/${text}` }] }) }), problem: 'is not understood; expected {claims.PATH}', unseenBy: nobodyElse })),
  ...['{claims.team}', '{claim.team}', '{ claims.team }'].flatMap((text) => [
    { name: `a placeholder in a policy that is no template: ${text}`, spec: sts({ fallbackRoleArn: arn, sessionPolicy: JSON.stringify({ Statement: [{ Resource: text }] }) }), problem: 'is not replaced here; expected a template', unseenBy: nobodyElse },
    { name: `a placeholder in a document: ${text}`, spec: role({ claim: 'a', sessionPolicy: { document: { Statement: [{ Resource: text }] } } }), problem: 'is not replaced here; expected a template', unseenBy: nobodyElse },
  ]),
  ...['{"Statement":"{claims.a}"}', '{"Statement":["{claims.a}"]}', '{"Statement":[{"NotResource":"{claims.a}"}]}', '{"Statement":[{"Sid":"{claims.a}"}]}', '{"Statement":[],"Version":"{claims.a}"}', '{"Resource":"{claims.a}","Statement":[]}'].map((text) => ({ name: `a placeholder in a wrong place: ${text}`, spec: role({ claim: 'a', sessionPolicy: { template: text } }), problem: 'expected it in Resource or Condition', unseenBy: nobodyElse })),
  ...['{claims. team}', '{claims.team }'].map((text) => ({ name: `a placeholder of a role that is none: ${text}`, spec: role({ claim: 'a', roleArn: undefined, roleArnTemplate: `arn:aws:iam::123456789012:role/${text}` }), problem: 'expected a role ARN with placeholders' })),
  { name: 'tags of a token', spec: sts({ fallbackRoleArn: arn, sessionTags: [{ key: 'Team', value: 'claims.team' }] }), problem: 'let the identity provider put them into its tokens', unseenBy: ['json schema'] },
  { name: 'a source identity of a token', spec: sts({ fallbackRoleArn: arn, sourceIdentity: 'claims.sub' }), problem: 'use "source: { type: ambient }" or "role"', unseenBy: ['json schema'] },
  { name: 'tags of a mapping with a token', spec: role({ claim: 'a', sessionTags: [{ key: 'Team', value: 'claims.team' }] }), problem: '"sessionTags" of "roleMappings"', unseenBy: ['json schema'] },
  { name: 'a source identity of a mapping with a token', spec: role({ claim: 'a', sourceIdentity: 'claims.sub' }), problem: '"sourceIdentity" of "roleMappings"', unseenBy: ['json schema'] },
  { name: 'tags of a service', spec: from({ type: 'ambient' }, { sessionTags: [{ key: 'Team', value: 'claims.team' }] }), problem: 'sessionTags', unseenBy: ['json schema'] },
  ...['aws:team', 'AWS:x', '', 'x'.repeat(129), 'a*', 'a<b'].map((key) => ({ name: `no key of a tag: ${key.slice(0, 8)}`, spec: mapped({ sessionTags: [{ key, value: 'claims.team' }] }), problem: 'sessionTags[0].key' })),
  { name: 'a tag twice, in another case', spec: mapped({ sessionTags: [{ key: 'Team', value: 'claims.a' }, { key: 'team', value: 'claims.b' }] }), problem: 'this tag is there already', unseenBy: nobodyElse },
  { name: '51 tags', spec: mapped({ sessionTags: Array.from({ length: 51 }, (_, index) => ({ key: `t${index}`, value: 'claims.a' })) }), problem: 'sessionTags' },
  { name: 'a tag without value', spec: mapped({ sessionTags: [{ key: 'Team' }] }), problem: 'sessionTags[0].value  missing' },
  ...['claims.a ==', 'team', 'claims.a == "b"'].map((value) => ({ name: `no value of a tag: ${value}`, spec: mapped({ sessionTags: [{ key: 'Team', value }] }), problem: 'line 1, column', unseenBy: nobodyElse })),
  ...['"a*b"', '"a" + "<"', '"é"+"!"'].map((value) => ({ name: `an invalid tag value for all callers: ${value}`, spec: mapped({ sessionTags: [{ key: 'Team', value }] }), problem: 'STS does not take', unseenBy: nobodyElse })),
  { name: 'a value of a tag that is always empty', spec: mapped({ sessionTags: [{ key: 'None', value: '""' }] }), problem: 'expected a value, or "allowEmpty: true"', unseenBy: nobodyElse },
  { name: 'an empty value of a tag that is not allowed', spec: mapped({ sessionTags: [{ key: 'None', value: '""', allowEmpty: 'yes' }] }), problem: 'sessionTags[0].allowEmpty' },
  { name: 'values of tags without claims', spec: mapped({ sessionTags: [{ key: 'Team', value: '"search"' }, { key: 'None', value: '""', allowEmpty: true }], sourceIdentity: '"mcp-extauth"' }) },
  { name: 'an invalid source identity for all callers', spec: mapped({ sourceIdentity: '"a b"' }), problem: 'STS does not take', unseenBy: nobodyElse },
  { name: 'a template that is too long with whatever claims', spec: role({ claim: 'a', sessionPolicy: { template: JSON.stringify({ Statement: [{ Resource: ['x'.repeat(2048), '{claims.a}'] }] }) } }), problem: 'at most 2048 characters', unseenBy: nobodyElse },
  { name: 'a source identity that does not parse', spec: mapped({ sourceIdentity: 'claims.' }), problem: 'line 1, column', unseenBy: nobodyElse },
  { name: 'a policy that is both', spec: role({ claim: 'a', sessionPolicy: { document: { Statement: [] }, template: '{"Statement":[]}' } }), problem: 'expected either "document" or "template"' },
  { name: 'a policy that is neither', spec: role({ claim: 'a', sessionPolicy: {} }), problem: 'expected either "document" or "template"' },
  { name: 'a document that is no policy', spec: role({ claim: 'a', sessionPolicy: { document: { a: 1 } } }), problem: 'expected a policy', unseenBy: nobodyElse },
  { name: 'a document that is too long', spec: role({ claim: 'a', sessionPolicy: { document: { Statement: ['x'.repeat(2048)] } } }), problem: 'at most 2048 characters', unseenBy: nobodyElse },
  ...['{', '[]', '{"Statement":{claims.team}}', '{"Statement":[{"Action":"s3:{claims.a}"}]}', '{"Statement":[{"Action":["a","{claims.a}"]}]}', '{"Statement":[{"NotAction":"{claims.a}"}]}', '{"Statement":[{"Effect":"{claims.a}"}]}', '{"Statement":[{"{claims.a}":"b"}]}'].map((text) => ({ name: `no template of a policy: ${text}`, spec: role({ claim: 'a', sessionPolicy: { template: text } }), problem: 'sessionPolicy', unseenBy: nobodyElse })),

  ...([
    ['type', { type: 7 }], ['chain', { type: 'ambient', chain: 'instance' }], ['chain', { type: 'ambient', chain: Array.from({ length: 7 }, () => 'instance') }],
    ['chain[0]', { type: 'ambient', chain: [7] }], ['signAs', { type: 'ambient', signAs: 'nobody' }], ['profile', { type: 'ambient', chain: ['profile'], profile: '' }],
    ['profile', { type: 'ambient', chain: ['profile'], profile: 'x'.repeat(257) }], ['through', { type: 'role', through: 'hub' }],
    ['through.source', { type: 'role', through: { roleArn: arn } }], ['through.source.type', { type: 'role', through: { roleArn: arn, source: {} } }],
    ['through.roleArn', { type: 'role', through: { source: { type: 'ambient' } } }], ['through.roleArn', chained({ roleArn: 'hub' })],
    ['through.roleArn', chained({ roleArn: `arn:aws:iam::123456789012:role/${'x'.repeat(2048)}` })], ['through.externalId', chained({ externalId: 'a' })],
    ['through.externalId', chained({ externalId: 'x'.repeat(1225) })], ['through.source.chain', chained({ source: { type: 'ambient', chain: [] } })],
  ] as const).map(([field, source], index) => ({ name: `no source (${index + 1}): ${field}`, spec: from(source), problem: `spec.cloudSts.source.${field}` })),
  ...([
    ['roleArnTemplate', { roleArnTemplate: `arn:aws:iam::123456789012:role/{claims.team}${'x'.repeat(2048)}`, roleArn: undefined }], ['roleArnTemplate', { roleArnTemplate: 7, roleArn: undefined }],
    ['allowedAccounts', { roleArn: undefined, roleArnTemplate: 'arn:aws:iam::{claims.account}:role/r', allowedAccounts: Array.from({ length: 1001 }, (_, index) => String(100_000_000_000 + index)) }],
    ['sessionTags', { sessionTags: {} }], ['sessionTags[0].key', { sessionTags: [{ value: 'claims.a' }] }], ['sessionTags[0].value', { sessionTags: [{ key: 'a', value: '' }] }],
    ['sessionTags[0].value', { sessionTags: [{ key: 'a', value: `claims.${'x'.repeat(1024)}` }] }], ['sessionTags[0].transitive', { sessionTags: [{ key: 'a', value: 'claims.a', transitive: 'yes' }] }],
    ['sessionTags[0].optional', { sessionTags: [{ key: 'a', value: 'claims.a', optional: 1 }] }], ['sourceIdentity', { sourceIdentity: '' }], ['sourceIdentity', { sourceIdentity: 7 }],
    ['sourceIdentity', { sourceIdentity: `claims.${'x'.repeat(1024)}` }], ['sessionPolicy', { sessionPolicy: '{"Statement":[]}' }], ['sessionPolicy.document', { sessionPolicy: { document: 'x' } }],
    ['sessionPolicy.template', { sessionPolicy: { template: '' } }], ['sessionPolicy.template', { sessionPolicy: { template: `{"Statement":["${'x'.repeat(4096)}"]}` } }],
    ['policyArns', { policyArns: Array.from({ length: 11 }, (_, index) => `arn:aws:iam::aws:policy/P${index}`) }], ['policyArns', { policyArns: 'arn:aws:iam::aws:policy/A' }],
    ['policyArns[0]', { policyArns: [arn] }], ['policyArns[0]', { policyArns: [`arn:aws:iam::aws:policy/${'x'.repeat(2048)}`] }], ['externalId', { externalId: 7 }],
  ] as const).map(([field, more], index) => ({ name: `no mapping (${index + 1}): ${field}`, spec: mapped(more), problem: `spec.cloudSts.roleMappings[0].${field}` })),

  { name: 'endpoints with FIPS and dual stack', spec: sts({ fallbackRoleArn: arn, fips: true, dualStack: true }) },
  ...['fips', 'dualStack'].map((name) => ({ name: `${name} beside an endpoint`, spec: sts({ fallbackRoleArn: arn, [name]: true, stsEndpoint: 'https://sts.example.com' }), problem: 'expected only one of them' })),
  ...['fips', 'dualStack'].map((name) => ({ name: `no ${name}`, spec: sts({ fallbackRoleArn: arn, [name]: 'yes' }), problem: `spec.cloudSts.${name}` })),
]
