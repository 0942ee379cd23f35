import { expect, test } from 'vitest'
import { once } from '../../../src/fields/index.ts'
import { externalAuthConfig, proxyConfig, registryConfig } from '../../../src/resources/index.ts'
import { document } from '../../support/load/publish/validators.ts'

const schema = once(externalAuthConfig)
const specOf = (spec: unknown): unknown => schema().parse(document(spec)).spec
const secret = { name: 'a', key: 'b' }
const fallbackRoleArn = 'arn:cloud:iam::123456789012:role/reader'

test('cloudSts has the defaults of the specification', () => {
  expect(specOf({ type: 'cloudSts', cloudSts: { region: 'eu-central-1', fallbackRoleArn } })).toEqual({
    type: 'cloudSts',
    cloudSts: {
      region: 'eu-central-1',
      fallbackRoleArn,
      roleClaim: 'groups',
      service: 'cloud-mcp',
      sessionDuration: 3600,
      sessionNameClaim: 'sub',
    },
  })
})

test('awsSts becomes cloudSts with the service aws-mcp', () => {
  expect(specOf({ type: 'awsSts', awsSts: { region: 'eu-central-1', fallbackRoleArn } })).toMatchObject({
    type: 'cloudSts',
    cloudSts: { service: 'aws-mcp', sessionDuration: 3600 },
  })
})

test('tokenExchange: empty texts are as if unset', () => {
  const tokenExchange = { tokenUrl: 'https://a/b', audience: 'c' }
  const defaulted = {
    ...tokenExchange,
    subjectTokenType: 'access_token',
    requestedTokenType: 'access_token',
    clientAuthMethod: 'client_secret_basic',
    insecureAllowHttp: false,
  }
  const empty = { externalTokenHeaderName: '', subjectProviderName: '', subjectTokenType: '' }
  expect(specOf({ type: 'tokenExchange', tokenExchange })).toEqual({ type: 'tokenExchange', tokenExchange: defaulted })
  expect(specOf({ type: 'tokenExchange', tokenExchange: { ...tokenExchange, ...empty } })).toEqual({
    type: 'tokenExchange',
    tokenExchange: defaulted,
  })
})

test('the embedded authorization server has the defaults of the specification, redis is kvstore', () => {
  const upstreamProviders = [
    { name: 'corp', type: 'oidc', oidcConfig: { issuerUrl: 'https://a', clientId: 'b' } },
    {
      name: 'github',
      type: 'oauth2',
      oauth2Config: {
        authorizationEndpoint: 'https://a',
        tokenEndpoint: 'https://b',
        clientId: 'c',
        tokenResponseMapping: { accessTokenPath: 'x' },
        userInfo: { endpointUrl: 'https://d', fieldMapping: {} },
      },
    },
  ]
  const redis = {
    aclUserConfig: { usernameSecretRef: secret, passwordSecretRef: secret },
    sentinelConfig: { masterName: 'm', sentinelService: { name: 's' } },
    tls: {},
  }
  const embeddedAuthServer = {
    issuer: 'https://auth.example.com',
    upstreamProviders,
    tokenLifespans: {},
    storage: { type: 'redis', redis },
  }
  expect(specOf({ type: 'embeddedAuthServer', embeddedAuthServer })).toMatchObject({
    embeddedAuthServer: {
      tokenLifespans: { accessTokenLifespan: '1h', refreshTokenLifespan: '168h', authCodeLifespan: '10m' },
      storage: {
        type: 'kvstore',
        kvstore: {
          sentinelConfig: { db: 0, sentinelService: { port: 26_379 } },
          tls: { insecureSkipVerify: false },
          dialTimeout: '5s',
          readTimeout: '3s',
          writeTimeout: '3s',
        },
      },
      upstreamProviders: [
        { oidcConfig: { scopes: ['openid', 'offline_access'] } },
        {
          oauth2Config: {
            tokenResponseMapping: {
              expiresInPath: 'expires_in',
              refreshTokenPath: 'refresh_token',
              scopePath: 'scope',
            },
            userInfo: {
              httpMethod: 'GET',
              fieldMapping: { subjectFields: ['sub'], nameFields: ['name'], emailFields: ['email'] },
            },
          },
        },
      ],
    },
  })
})

test('ProxyConfig has the defaults of the shared shapes, durations in milliseconds, sizes in bytes', () => {
  const route = { name: 'a', path: '/a', target: 'https://b', externalAuthConfigRef: { name: 'c' } }
  const { spec, metadata } = proxyConfig().parse(
    document({ auth: { mode: 'anonymous' }, routes: [route] }, 'ProxyConfig'),
  )
  expect(metadata).toEqual({ name: 'example', namespace: 'default' })
  expect(spec).toEqual({
    listen: {
      address: '127.0.0.1:8080',
      allowedOrigins: [],
      allowedHosts: [],
      headerLimit: 16_384,
      connectionLimit: 10_000,
      trustedProxies: [],
    },
    admin: { address: '127.0.0.1:8081', inspector: 'off' },
    secretsDirectory: './secrets',
    limits: {},
    auth: { mode: 'anonymous' },
    routes: [
      {
        ...route,
        requiredScopes: [],
        allowBoundTokens: false,
        timeouts: { connect: 5_000, firstByte: 60_000, idle: 0 },
        limits: { bufferedBody: 10_485_760, evaluatedBody: 1_048_576 },
        passHeaders: [],
        sseKeepAlive: 0,
        http2: false,
        allowUpgrade: false,
        onMatcherError: 'skip',
        insecureAllowAnonymous: false,
      },
    ],
  })
})

test('the auth section has the defaults of the specification; public paths of both places count', () => {
  const provider = { name: 'a', issuerUrl: 'https://idp', audience: 'b' }
  const { auth } = registryConfig().parse({
    auth: {
      publicPaths: ['/b', '/a'],
      oauth: { resourceUrl: 'https://r', providers: [provider], publicPaths: ['/a'] },
    },
    registries: [{ name: 'default', source: { file: 'a.json' } }],
  })
  expect(auth).toEqual({
    mode: 'oauth',
    oauth: {
      resourceUrl: 'https://r',
      realm: 'mcp-registry',
      scopesSupported: ['mcp-registry:read', 'mcp-registry:write'],
      publicPaths: ['/a', '/b'],
      providers: [{ ...provider, audienceClaim: 'aud', allowPrivateIP: false, insecureAllowHttp: false }],
    },
  })
})
