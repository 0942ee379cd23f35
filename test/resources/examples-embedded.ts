import type { Example } from './examples-outgoing.ts'

const secret = { name: 'keys', key: 'current' }
const oidc = (more: object = {}, name: unknown = 'corp') => ({
  name,
  type: 'oidc',
  oidcConfig: { issuerUrl: 'https://idp.example.com', clientId: 'a', ...more },
})
const oauth2 = (more: object = {}) => ({
  name: 'github',
  type: 'oauth2',
  oauth2Config: {
    authorizationEndpoint: 'https://github.example.com/authorize',
    tokenEndpoint: 'https://github.example.com/token',
    clientId: 'a',
    userInfo: { endpointUrl: 'https://api.example.com/user' },
    ...more,
  },
})
const server = (more: object) => ({
  type: 'embeddedAuthServer',
  embeddedAuthServer: { issuer: 'https://auth.example.com', upstreamProviders: [oidc()], ...more },
})
const upstream = (...upstreamProviders: readonly unknown[]) => server({ upstreamProviders })
const sentinel = { masterName: 'mymaster', sentinelAddrs: ['redis-0:26379'] }
const store = (sentinelConfig: unknown, more: object = {}, type = 'kvstore') =>
  server({
    storage: {
      type,
      [type]: {
        aclUserConfig: { usernameSecretRef: secret, passwordSecretRef: secret },
        ...(sentinelConfig === undefined ? {} : { sentinelConfig }),
        ...more,
      },
    },
  })

const trusts = (...issuers: readonly unknown[]) => server({ identityAssertions: { issuers } })
const issuer = { issuerUrl: 'https://id.example.com' }
const job = { clientId: 'job', clientSecretRef: secret }
const PUBLIC =
  '-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n'

// prettier-ignore
export const EMBEDDED_EXAMPLES: readonly Example[] = [
  { name: 'an embedded server', spec: server({}) },
  { name: 'an embedded server with everything', spec: server({ authorizationEndpointBaseUrl: 'https://login.example.com/base', hmacSecretRefs: [secret], signingKeySecretRefs: [secret, secret], tokenLifespans: { accessTokenLifespan: '30m', refreshTokenLifespan: '168h', authCodeLifespan: '1m30.5s' }, upstreamProviders: [oidc(), oauth2({ tokenResponseMapping: { accessTokenPath: 'authed_user.access_token' } })] }) },
  ...['http://localhost', 'http://localhost:8080/x', 'http://127.0.0.1:80', 'http://[::1]:9000', 'https://a.example.com/tenant'].map((issuer) => ({ name: `issuer ${issuer}`, spec: server({ issuer }) })),
  ...['http://auth.example.com', 'https://a.example.com/', 'https://a.example.com?x=1', 'https://a.example.com#x', 'ftp://a.example.com', 'https://user@a.example.com', 'http://localhost.example.com', 'http://localhost@evil.example.com', ''].map((issuer) => ({ name: `no issuer: ${issuer}`, spec: server({ issuer }), problem: 'spec.embeddedAuthServer.issuer' })),
  { name: 'an http base beyond localhost', spec: server({ authorizationEndpointBaseUrl: 'http://a.example.com' }), problem: 'http only for localhost' },
  { name: 'no upstream', spec: upstream(), problem: 'too short, expected at least 1 entry' },
  { name: 'upstreams of one name', spec: upstream(oidc(), oidc()), problem: 'must be unique', unseenBy: ['json schema'] },
  ...['A', '-a', 'a-', '', 'a_b', 'a'.repeat(64)].map((name) => ({ name: `no upstream name: ${name.slice(0, 5)}`, spec: upstream(oidc({}, name)), problem: 'upstreamProviders[0].name' })),
  { name: 'the longest upstream name', spec: upstream(oidc({}, 'a'.repeat(63))) },
  { name: 'oidc with the config of oauth2', spec: upstream({ ...oauth2(), type: 'oidc' }), problem: '"oauth2Config" must be absent when type is "oidc"' },
  { name: 'oauth2 with the config of oidc', spec: upstream({ ...oidc(), type: 'oauth2' }), problem: '"oidcConfig" must be absent when type is "oauth2"' },
  { name: 'oidc with both configs', spec: upstream({ ...oauth2(), ...oidc() }), problem: '"oauth2Config" must be absent' },
  { name: 'an http upstream issuer', spec: upstream(oidc({ issuerUrl: 'http://idp.example.com' })), problem: 'expected an https URL' },
  { name: 'a parameter of our own', spec: upstream(oidc({ additionalAuthorizationParams: { access_type: 'offline', prompt: 'consent' } })) },
  ...['response_type', 'client_id', 'redirect_uri', 'scope', 'state', 'code_challenge', 'code_challenge_method', 'nonce'].map((name) => ({ name: `reserved parameter ${name}`, spec: upstream(oidc({ additionalAuthorizationParams: { [name]: 'x' } })), problem: 'parameters that the server sets itself' })),
  { name: 'a reserved parameter of oauth2', spec: upstream(oauth2({ additionalAuthorizationParams: { state: 'x' } })), problem: 'parameters that the server sets itself' },
  { name: 'oauth2 without a source of identity', spec: upstream(oauth2({ userInfo: undefined })), problem: 'oauth2Config.userInfo  nothing says who logged in' },
  { name: 'oauth2 with an identity from the token', spec: upstream(oauth2({ userInfo: undefined, identityFromToken: { subjectPath: 'access_token|@upstreamjwt|sub', namePath: 'user.name', emailPath: 'user.email' } })) },
  ...['', 'a|b', 'user.#.id', '@this', 'a|@upstreamjwt', 'a b'].map((subjectPath) => ({ name: `no path of an identity: "${subjectPath}"`, spec: upstream(oauth2({ identityFromToken: { subjectPath } })), problem: 'identityFromToken.subjectPath' })),
  ...['oid', '_x1', ''].map((subjectClaim) => ({ name: `subject claim "${subjectClaim}"`, spec: upstream(oidc({ subjectClaim })) })),
  ...['a.b', 'a-b', 'https://a', '1a', 'a'.repeat(129)].map((subjectClaim) => ({ name: `no subject claim: ${subjectClaim.slice(0, 9)}`, spec: upstream(oidc({ subjectClaim })), problem: 'oidcConfig.subjectClaim' })),
  { name: 'a client that registers itself', spec: upstream(oauth2({ clientId: undefined, dcrConfig: { discoveryUrl: 'https://a.example.com/meta', initialAccessTokenRef: secret, softwareId: 'us', softwareStatement: 'a.b.c' } })) },
  { name: 'a client that registers itself at an endpoint', spec: upstream(oauth2({ clientId: undefined, dcrConfig: { registrationEndpoint: 'https://a.example.com/register' } })) },
  { name: 'a client that is there and registers itself', spec: upstream(oauth2({ dcrConfig: { registrationEndpoint: 'https://a.example.com/register' } })), problem: '"clientId" and "dcrConfig" are mutually exclusive' },
  { name: 'a secret of a client that registers itself', spec: upstream(oauth2({ clientId: undefined, clientSecretRef: secret, dcrConfig: { registrationEndpoint: 'https://a.example.com/register' } })), problem: '"clientSecretRef" and "dcrConfig" are mutually exclusive' },
  { name: 'no client', spec: upstream(oauth2({ clientId: undefined })), problem: 'oauth2Config.clientId  missing, expected the client identifier' },
  { name: 'a registration nowhere', spec: upstream(oauth2({ clientId: undefined, dcrConfig: { softwareId: 'us' } })), problem: 'expected "discoveryUrl" or "registrationEndpoint"' },
  { name: 'a registration at two places', spec: upstream(oauth2({ clientId: undefined, dcrConfig: { discoveryUrl: 'https://a.example.com/meta', registrationEndpoint: 'https://a.example.com/register' } })), problem: 'mutually exclusive' },
  { name: 'a registration over http', spec: upstream(oauth2({ clientId: undefined, dcrConfig: { registrationEndpoint: 'http://a.example.com/register' } })), problem: 'dcrConfig.registrationEndpoint' },
  { name: 'a primary provider', spec: server({ upstreamProviders: [oidc(), oauth2()], primaryUpstreamProvider: 'github' }) },
  { name: 'a primary provider that is not there', spec: server({ primaryUpstreamProvider: 'github' }), problem: 'expected the name of one of "upstreamProviders"', unseenBy: ['json schema'] },
  { name: 'scopes that every client has', spec: server({ baselineClientScopes: ['openid', 'offline_access'] }) },
  { name: 'too many scopes that every client has', spec: server({ baselineClientScopes: Array.from({ length: 11 }, (_, index) => `s${index}`) }), problem: 'at most 10' },
  { name: 'metadata documents', spec: server({ cimd: { enabled: true, cacheMaxSize: 100, cacheFallbackTtl: '5m' } }) },
  ...[{ cacheMaxSize: 0 }, { cacheFallbackTtl: '5' }].map((cimd) => ({ name: `no metadata documents: ${JSON.stringify(cimd)}`, spec: server({ cimd }), problem: 'embeddedAuthServer.cimd' })),
  { name: 'metadata documents for two days', spec: server({ cimd: { cacheFallbackTtl: '48h' } }), problem: 'expected 1s to 24h', unseenBy: ['json schema'] },
  { name: 'secrets for a redirect URI', spec: server({ forceConfidentialRedirectUris: ['https://client.example.com/cb'] }) },
  ...['http://client.example.com/cb', 'https://client.example.com/cb?x', 'https://client.example.com/cb#x'].map((uri) => ({ name: `no secrets for ${uri}`, spec: server({ forceConfidentialRedirectUris: [uri] }), problem: 'forceConfidentialRedirectUris[0]' })),
  { name: 'secrets for a redirect URI on this machine', spec: server({ forceConfidentialRedirectUris: ['https://localhost/cb'] }), problem: 'expected URLs of other hosts', unseenBy: ['json schema', 'crd'] },
  { name: 'secrets for a redirect URI of public clients', spec: server({ forceConfidentialRedirectUris: ['https://a.example.com/cb'], allowConfidentialClientRegistration: false }), problem: 'needs "allowConfidentialClientRegistration"', unseenBy: ['json schema', 'crd'] },
  { name: 'an http issuer with insecureAllowHTTP', spec: server({ issuer: 'http://auth.tools.svc:8080', insecureAllowHTTP: true, allowConfidentialClientRegistration: false }) },
  { name: 'an http issuer with a user', spec: server({ issuer: 'http://user@auth.tools.svc', insecureAllowHTTP: true, allowConfidentialClientRegistration: false }), problem: 'embeddedAuthServer.issuer' },
  { name: 'secrets of clients over http', spec: server({ issuer: 'http://auth.tools.svc', insecureAllowHTTP: true }), problem: 'expected "allowConfidentialClientRegistration: false" beside it', unseenBy: ['json schema', 'crd'] },
  { name: 'secrets of clients over http on this machine', spec: server({ issuer: 'http://localhost:8080', insecureAllowConfidentialOverLoopbackHTTP: false }), problem: 'expected "insecureAllowConfidentialOverLoopbackHTTP: true" beside it', unseenBy: ['json schema', 'crd'] },
  { name: 'a login that sends nothing on', spec: server({ disableUpstreamTokenInjection: true }) },
  { name: 'user info by PUT', spec: upstream(oauth2({ userInfo: { endpointUrl: 'https://a/b', httpMethod: 'PUT' } })), problem: 'is not known' },
  { name: 'user info fields', spec: upstream(oauth2({ userInfo: { endpointUrl: 'https://a/b', httpMethod: 'POST', additionalHeaders: { accept: 'application/json' }, fieldMapping: { subjectFields: ['id', 'login'] } } })) },
  { name: 'a mapping without access token path', spec: upstream(oauth2({ tokenResponseMapping: { scopePath: 'x' } })), problem: 'accessTokenPath  missing' },
  ...['1d', '', '-1h', '1', 'h', '1h ', '1.h', '1e3s'].map((accessTokenLifespan) => ({ name: `no duration: "${accessTokenLifespan}"`, spec: server({ tokenLifespans: { accessTokenLifespan } }), problem: 'expected a Go duration' })),
  { name: 'a duration beyond Go', spec: server({ tokenLifespans: { accessTokenLifespan: '9999999h' } }), problem: '64-bit nanoseconds', unseenBy: ['json schema'] },
  ...['300ms', '1.5h', '2h45m', '1µs', '100us5ns'].map((dialTimeout) => ({ name: `duration ${dialTimeout}`, spec: store(sentinel, { dialTimeout }) })),
  ...[['accessTokenLifespan', '1m'], ['accessTokenLifespan', '24h'], ['refreshTokenLifespan', '1h'], ['refreshTokenLifespan', '720h'], ['authCodeLifespan', '30s'], ['authCodeLifespan', '10m']].map(([name = '', lifespan]) => ({ name: `${name} ${lifespan}`, spec: server({ tokenLifespans: { [name]: lifespan } }) })),
  ...[['accessTokenLifespan', '59s', '1m to 24h'], ['accessTokenLifespan', '24h1ms', '1m to 24h'], ['refreshTokenLifespan', '59m', '1h to 720h'], ['refreshTokenLifespan', '721h', '1h to 720h'], ['authCodeLifespan', '29s', '30s to 10m'], ['authCodeLifespan', '11m', '30s to 10m']].map(([name = '', lifespan, bounds]) => ({ name: `${name} ${lifespan}`, spec: server({ tokenLifespans: { [name]: lifespan } }), problem: `expected ${bounds}`, unseenBy: ['json schema' as const] })),
  { name: 'an upstream inside of the network', spec: upstream({ ...oidc(), caBundleRef: secret, allowPrivateIP: true }) },
  ...['sub', 'scope', 'tsid', 'act', 'cnf', 'sid'].map((name) => ({ name: `reserved claim ${name} forwarded`, spec: server({ forwardClaims: ['department', name] }), problem: 'claims that the server makes itself' })),
  { name: 'a tolerance for ID tokens', spec: upstream(oidc({ toleranceSeconds: 60 })) },
  { name: 'a tolerance beyond a minute', spec: upstream(oidc({ toleranceSeconds: 61 })), problem: '60' },
  { name: 'limits, metadata documents inside of the network, and more claims', spec: server({ limits: { registration: { perSecond: 0.5 }, token: { burst: 200 }, registeredClients: 100 }, clientMetadata: { allowPrivateIP: true, caBundleRef: secret }, forwardClaims: ['department'] }) },
  { name: 'no requests at all', spec: server({ limits: { token: { perSecond: 0 } } }), problem: 'too small' },
  { name: 'a store at one address', spec: store(undefined, { addr: 'redis.example.com:6379' }) },
  { name: 'a store at one address, as its default user', spec: server({ storage: { type: 'redis', redis: { addr: '[::1]:6379', aclUserConfig: { passwordSecretRef: secret } } } }) },
  { name: 'a store at an address without port', spec: store(undefined, { addr: 'redis.example.com' }), problem: 'expected host:port' },
  { name: 'a store at an address and by sentinels', spec: store(sentinel, { addr: 'redis.example.com:6379' }), problem: 'mutually exclusive' },
  { name: 'a store at an address with TLS for sentinels', spec: store(undefined, { addr: 'redis.example.com:6379', sentinelTls: {} }), problem: 'mutually exclusive' },
  { name: 'a store that nobody names', spec: store(undefined), problem: 'expected "addr" or "sentinelConfig"' },
  { name: 'a store in cluster mode', spec: store(undefined, { addr: 'redis.example.com:6379', clusterMode: true }), problem: 'a store in cluster mode is not used here', unseenBy: ['json schema', 'crd'] },
  { name: 'replicas to wait for', spec: store(sentinel, { waitReplicas: 1 }) },
  { name: 'too many replicas to wait for', spec: store(sentinel, { waitReplicas: 17 }), problem: 'too large' },
  { name: 'memory', spec: server({ storage: { type: 'memory' } }) },
  { name: 'memory by default', spec: server({ storage: {} }) },
  { name: 'kvstore', spec: store(sentinel) },
  { name: 'the alias redis', spec: store(sentinel, {}, 'redis') },
  { name: 'kvstore with everything', spec: store({ masterName: 'm', db: 3, sentinelService: { name: 'redis', namespace: 'data', port: 26_380 } }, { tls: { caCertSecretRef: secret }, sentinelTls: { insecureSkipVerify: true }, dialTimeout: '1s', readTimeout: '2s', writeTimeout: '500ms' }) },
  { name: 'kvstore without its object', spec: server({ storage: { type: 'kvstore' } }), problem: 'missing, "kvstore" is required when type is "kvstore"' },
  { name: 'memory with a kvstore', spec: server({ storage: { kvstore: { aclUserConfig: { usernameSecretRef: secret, passwordSecretRef: secret }, sentinelConfig: sentinel } } }), problem: '"kvstore" must be absent when type is "memory"' },
  { name: 'sentinels by address and by service', spec: store({ ...sentinel, sentinelService: { name: 'redis' } }), problem: 'mutually exclusive' },
  { name: 'no sentinels', spec: store({ masterName: 'm' }), problem: 'expected "sentinelAddrs" or "sentinelService"' },
  { name: 'a sentinel without port', spec: store({ masterName: 'm', sentinelAddrs: ['redis'] }), problem: 'expected host:port' },
  { name: 'kvstore without users', spec: server({ storage: { type: 'kvstore', kvstore: { sentinelConfig: sentinel } } }), problem: 'aclUserConfig  missing' },
  { name: 'issuers of identity assertions', spec: trusts(issuer, { issuerUrl: 'https://b.example.com', jwksUrl: 'https://b.example.com/keys', caBundleRef: secret, allowPrivateIP: true, clients: [{ clientId: 'x', at: 'job' }, { clientId: 'y' }] }) },
  { name: 'no issuer of identity assertions', spec: trusts(), problem: 'too short' },
  { name: 'an issuer of identity assertions twice', spec: trusts(issuer, issuer), problem: 'expected each issuerUrl once', unseenBy: ['json schema'] },
  { name: 'an http issuer of identity assertions', spec: trusts({ issuerUrl: 'http://id.example.com' }), problem: 'expected an https URL' },
  { name: 'an issuer for no client', spec: trusts({ ...issuer, clients: [] }), problem: 'too short' },
  { name: 'a client with everything', spec: server({ clients: [{ ...job, grantTypes: ['client_credentials', 'urn:ietf:params:oauth:grant-type:jwt-bearer'], resources: ['https://mcp.example.com/mcp'], scopes: ['mcp:read'], lifetime: '5m' }, { clientId: 'ci', jwksUrl: 'https://ci.example.com/keys' }, { clientId: 'cd', publicKeys: [PUBLIC] }] }) },
  { name: 'a client twice', spec: server({ clients: [job, job] }), problem: 'expected each clientId once', unseenBy: ['json schema'] },
  { name: 'a client without credential', spec: server({ clients: [{ clientId: 'job' }] }), problem: 'a client needs one of' },
  { name: 'a client with two credentials', spec: server({ clients: [{ ...job, jwksUrl: 'https://ci.example.com/keys' }] }), problem: 'mutually exclusive' },
  { name: 'a client with a private key', spec: server({ clients: [{ clientId: 'ci', publicKeys: ['-----BEGIN PRIVATE KEY-----\nx'] }] }), problem: 'expected a public key' },
  { name: 'a client with a grant of logins', spec: server({ clients: [{ ...job, grantTypes: ['authorization_code'] }] }), problem: 'is not known' },
  ...['59s', '61m'].map((lifetime) => ({ name: `a client with tokens for ${lifetime}`, spec: server({ clients: [{ ...job, lifetime }] }), problem: 'expected 1m to 1h', unseenBy: ['json schema' as const] })),
  ...['', 'a:b', 'https://a.example/client'].map((clientId) => ({ name: `no identifier of a client: ${clientId}`, spec: server({ clients: [{ ...job, clientId }] }), problem: 'clients[0].clientId' })),
]
