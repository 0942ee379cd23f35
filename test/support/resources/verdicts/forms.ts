const arn = 'arn:aws:iam::123456789012:role/reader'
const secret = { name: 'keys', key: 'current' }

// prettier-ignore
const URLS = [
  'https://a', 'https://a/', 'https://A.example.com', 'http://a', 'HTTPS://a', 'https:a', '//a', 'https:///a', 'https://a:443', 'https://a:0',
  'https://a:65535', 'https://a:65536', 'https://a:99999', 'https://a:', 'https://a:080', 'https://[::1]', 'https://[::1]:1', 'https://[1::2::3]',
  'https://[::12345]', 'https://[::1', 'https://::1', 'https://[fe80::1%25eth0]', 'https://1.2.3.4', 'https://256.1.1.1', 'https://1.2.3.4.5',
  'https://a..b', 'https://.', 'https://a.', 'https://-a-', 'https://a_b', 'https://xn--zca', 'https://ä', 'https://a%41', 'https://a/%41',
  'https://a/%', 'https://a/%zz', 'https://a/?q=%zz', 'https://a?b', 'https://a?b?c', 'https://a/b?c#d', 'https://a#', 'https://u@a', 'https://u:p@a', 'https://@a',
  'https://a\\b', 'https://a/\\b', 'https://a/{b}', 'https://a/|', 'https://a/^', 'https://a/"', 'https://a/<b>', 'https://a/ b', 'https://a\tb', 'https://a/b\n',
  ' https://a', 'https://a\u00A0', 'https://a\u3000b', 'https://a/\u2028', 'https://a/ä', 'https://a;b', 'https://a,b', 'https://a&b', 'javascript:alert(1)', 'file:///a',
] as const

// prettier-ignore
const ISSUERS = [
  'https://a', 'https://a/', 'https://a/b', 'https://a/b/', 'https://a?b', 'https://a#b', 'https://u@a', 'http://localhost', 'http://localhost/', 'http://localhost:80/x',
  'http://127.0.0.1', 'http://127.0.0.2', 'http://[::1]:1', 'http://[::2]', 'http://localhost.example.com', 'http://LOCALHOST', 'https://a:0', 'https://a:65536',
  'https://[1::2::3]', 'https://[::12345]', 'https://a/%41', 'https://a/%zz', 'https://a/\\b', 'https://a b', 'https://a\u00A0', 'https://a\u3000/b', 'https://a/\u2028b', 'https://256.1.1.1',
] as const

// prettier-ignore
const DURATIONS = [
  '0s', '1s', '1.5s', '.5s', '1.s', '1', '0', 's', '1d', '-1s', '+1s', '1S', '1 s', ' 1s', '1s\n', '1h1h', '1us', '1µs', '1μs', '1ns', '0.1ns', '1e3s',
  '2562047h47m16.854775807s', '2562047h47m16.854775808s', '2562048h', '9223372036854775807ns', '9223372036854775808ns', '99999999999999999999h',
  '596h31m23.647s', '596h31m23.648s', '597h', '000000000001s', '0.000000000000000000001s', '1s'.repeat(32), '1s'.repeat(33),
] as const

// prettier-ignore
const ADDRESSES = [
  'a:1', 'a:0', 'a:99999', 'a:65535', 'a:65536', 'a:01', 'a', ':1', 'a:', 'a:b', '[::1]:1', '::1:1', 'a b:1', 'a\u00A0:1', 'a:1\u3000', 'a\u2028:1', 'a:1\n', 'a..b:1',
  '-:1', 'https://a:1', 'a/b:1', 'a@b:1', 'ä:1',
] as const

// prettier-ignore
const SIZES = [
  '0', '1', '1Ki', '1.5Ki', '1023Mi', '1024Mi', '1025Mi', '1Gi', '1.0000001Gi', '2Gi', '1Ti', '1E', '1Ei', '1m', '1e3', '-1', '1 Ki', '1KB', '0.5', '1073741824', '1073741825', 0, -1,
  1.5, 1_073_741_824, 1_073_741_825, true,
] as const

// prettier-ignore
const HEADER_NAMES = ['X-A', 'x_a', 'a b', 'a:b', 'ä', '', 'a\r\nb', 'a\u00A0', 'Host', 'MCP-x', '!#$%&\'*+.^_`|~']
// prettier-ignore
const HEADER_VALUES = ['a', '', 'a\tb', 'a\rb', 'a\nb', 'a\r\nX-B: c', 'a\u0000b', 'ä', 'a\u00A0b', 'a\u007F']
// prettier-ignore
const CLAIM_PORTS = [0, 1, 65_535, 65_536, 99_999, -1, 1.5, '1', null]

const exchange = (more: object) => ({
  type: 'tokenExchange',
  tokenExchange: { tokenUrl: 'https://idp.example.com/token', audience: 'backend', ...more },
})
const upstream = (userInfo: object) => ({
  name: 'github',
  type: 'oauth2',
  oauth2Config: {
    authorizationEndpoint: 'https://github.example.com/authorize',
    tokenEndpoint: 'https://github.example.com/token',
    clientId: 'a',
    userInfo: { endpointUrl: 'https://api.example.com/user', ...userInfo },
  },
})
const server = (more: object) => ({
  type: 'embeddedAuthServer',
  embeddedAuthServer: { issuer: 'https://auth.example.com', upstreamProviders: [upstream({})], ...more },
})
const store = (sentinelConfig: object, more: object = {}) =>
  server({
    storage: {
      type: 'kvstore',
      kvstore: {
        aclUserConfig: { usernameSecretRef: secret, passwordSecretRef: secret },
        sentinelConfig: { masterName: 'm', ...sentinelConfig },
        ...more,
      },
    },
  })
const sentinelAddrs = ['redis:26379']
const each = (what: string, values: readonly unknown[], spec: (value: unknown) => object) =>
  values.map((value) => [`${what} ${JSON.stringify(value)}`, spec(value)] as const)

/** Specs of MCPExternalAuthConfig with valid, invalid and unusual spellings of patterned strings. */
export const FORMS: readonly (readonly [string, object])[] = [
  ...each('tokenUrl', URLS, (tokenUrl) => exchange({ tokenUrl })),
  ...each('issuer', ISSUERS, (issuer) => server({ issuer })),
  ...each('authorizationEndpointBaseUrl', ISSUERS, (authorizationEndpointBaseUrl) =>
    server({ authorizationEndpointBaseUrl }),
  ),
  ...each('accessTokenLifespan', DURATIONS, (accessTokenLifespan) =>
    server({ tokenLifespans: { accessTokenLifespan } }),
  ),
  ...each('dialTimeout', DURATIONS, (dialTimeout) => store({ sentinelAddrs }, { dialTimeout })),
  ...each('sentinelAddrs', ADDRESSES, (address) => store({ sentinelAddrs: [address] })),
  ...each('sentinelService.port', CLAIM_PORTS, (port) => store({ sentinelService: { name: 'redis', port } })),
  ...each('externalTokenHeaderName', HEADER_NAMES, (externalTokenHeaderName) => exchange({ externalTokenHeaderName })),
  ...each('name of an additional header', HEADER_NAMES, (name) =>
    server({ upstreamProviders: [upstream({ additionalHeaders: { [String(name)]: 'a' } })] }),
  ),
  ...each('value of an additional header', HEADER_VALUES, (value) =>
    server({ upstreamProviders: [upstream({ additionalHeaders: { 'X-A': value } })] }),
  ),
  ['a null in additionalHeaders', server({ upstreamProviders: [upstream({ additionalHeaders: { 'X-A': null } })] })],
  ...each('name of a parameter', [...HEADER_NAMES, 'a'.repeat(256), 'a'.repeat(257), '😀'.repeat(256)], (name) => {
    const { oauth2Config, ...provider } = upstream({})
    const additionalAuthorizationParams = { [String(name)]: 'a' }
    return server({
      upstreamProviders: [{ ...provider, oauth2Config: { ...oauth2Config, additionalAuthorizationParams } }],
    })
  }),
  ['a role mapping of 500', mappings(500)],
  ['a role mapping of 501', mappings(501)],
]

function mappings(count: number): object {
  const roleMappings = Array.from({ length: count }, (_, index) => ({ roleArn: arn, claim: `g${index}` }))
  return { type: 'cloudSts', cloudSts: { region: 'eu-central-1', roleMappings } }
}

/** Specs of MCPRemoteProxy likewise. */
export const PROXY_FORMS: readonly (readonly [string, object])[] = [
  ...each('bufferedBody', SIZES, (bufferedBody) => ({ remoteUrl: 'https://a', limits: { bufferedBody } })),
  ...each('connect', DURATIONS, (connect) => ({ remoteUrl: 'https://a', timeouts: { connect } })),
  ...each('remoteUrl', URLS, (remoteUrl) => ({ remoteUrl })),
]
