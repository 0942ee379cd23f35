import { within } from '../mutation.ts'

/** Guards of `src/http`. */
export default [
  ...within(
    'src/http/backend-path.ts',
    ['test/unit/forward/redirects.test.ts', 'test/unit/http', 'test/system/http'],
    [
      [
        'a Location is ours on the origin of the backend only',
        "if (url === null || url.origin !== origin || url.username !== '' || url.password !== '') return undefined",
        'if (url === null) return undefined',
      ],
      ['a path that becomes a host is no Location', "path.startsWith('//') ? undefined : ", ''],
    ],
  ),
  ...within(
    'src/http/bearer.ts',
    ['test/unit/http/challenge.test.ts'],
    [
      ['two Authorization lines are refused', 'if (values.length > 1)', 'if (values.length > 2)'],
      [
        'a token has at most 16 KiB',
        "value.length > MAX_TOKEN_BYTES + 'Bearer '.length",
        "value.length > MAX_TOKEN_BYTES + 'Bearer  '.length",
      ],
    ],
  ),
  ...within(
    'src/http/header-policy.ts',
    ['test/unit/http/header-policy.test.ts'],
    [
      ['no Cookie of a caller goes on', "'proxy-authorization', 'cookie', ", "'proxy-authorization', "],
      ['no Proxy-Authorization of a caller goes on', "['proxy-authorization', ", '['],
      ['X-Amz-* headers of a caller that sign or identify are dropped', "  'x-amz-security-token',\n", ''],
      ['X-Amz-* go on in the spelling that is signed', '$|x-amz-)/', '$)/', ['test/unit/http/gateway-headers.test.ts']],
      [
        'no token of another gateway goes on, on no account',
        "if (gateway?.kind === 'token') return drop('caller_credential')",
        '',
        ['test/unit/http/gateway-headers.test.ts'],
      ],
      [
        'no identity of another gateway goes on that the route does not name',
        "if (gateway !== undefined && !passing.has(name)) return drop('untrusted')",
        '',
        ['test/unit/http/gateway-headers.test.ts'],
      ],
      ['a header that we set is not taken from callers', "if (owned.has(plain)) return drop('set_by_route')", ''],
      [
        'headers named in Connection stay here',
        "if (named !== undefined) headers = without(headers, (name) => named.has(name), 'hop_by_hop', onDrop)",
        '',
      ],
      ["no header with the caller's raw token goes on", 'value.includes(credentials)) ||', 'value === credentials) ||'],
      ['a token among WebSocket subprotocols stays here', 'const kept = withoutTokens(value)', 'const kept = value'],
      ['only the proxy names the client', "  'true-client-ip',\n", ''],
    ],
  ),
  ...within(
    'src/http/host-header.ts',
    ['test/unit/proxy/ambiguous.test.ts', 'test/unit/ops/open-endpoints.test.ts', 'test/unit/registry/http.test.ts'],
    [['two Host lines are refused everywhere', 'return hosts > 1', 'return hosts > 2']],
  ),
  ...within(
    'src/http/path-check.ts',
    ['test/unit/http/path-check.test.ts'],
    [
      [
        'an encoded slash is refused',
        "if (count(decoded) !== slashes) throw refused('the path has an encoded slash')",
        '',
      ],
      [
        'an encoded backslash is refused',
        "if (decoded.includes('\\\\')) throw refused('the path has an encoded backslash')",
        '',
      ],
      ['an encoded NUL is refused', "if (decoded.includes('\\0')) throw refused('the path has an encoded NUL')", ''],
      ['dot segments are refused behind any number of encodings', '    checkDotSegments(decoded)\n', ''],
      [
        'a dot segment with parameters is one',
        'const name = parameters === -1 ? segment : segment.slice(0, parameters)',
        'const name = parameters === -2 ? segment.slice(0, parameters) : segment',
      ],
    ],
  ),
  ...within(
    'src/http/query-policy.ts',
    ['test/unit/http/query-policy.test.ts'],
    [
      [
        'parameters of a presigned request stay here',
        'pairs.filter((pair) => !isCredential(pair))',
        "pairs.filter((pair) => !pair.startsWith('X-Amz-'))",
      ],
    ],
  ),
  ...within(
    'src/http/request-target.ts',
    ['test/unit/http/request-target.test.ts'],
    [
      [
        'absolute-form names our own host',
        'if (withoutDefaultPort(authority, scheme) !== withoutDefaultPort(host, scheme))',
        "if (authority === '')",
      ],
    ],
  ),
  ...within(
    'src/http/response-policy.ts',
    ['test/unit/http/response-policy.test.ts'],
    [
      [
        'no header of an answer holds the credential that was sent',
        'value === secret : value.includes(secret)',
        'value === secret : value === secret',
      ],
      [
        'nor does its Location',
        'value === undefined || holdsOne(value, secrets) ? undefined : value',
        'value === undefined ? undefined : value',
      ],
      ['no cookie of a backend reaches a caller', "  'set-cookie',\n", ''],
      ['no challenge of a backend reaches a caller', "  'www-authenticate',\n", ''],
      [
        'an event stream has no length for its client',
        ' && !isEvents',
        '',
        ['test/unit/http/response-policy.test.ts', 'test/system/forward/streams.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/http/strict-json.ts',
    ['test/unit/http/strict-json.test.ts'],
    [
      [
        'a field named as the prototype is refused',
        "if (this.#wellFormed && name === '__proto__') throw new JsonError('the name of a prototype')",
        '',
        ['test/unit/authorize/requests.test.ts'],
      ],
      [
        'a member name that comes twice is refused',
        "if (members[name] !== undefined) throw new JsonError('duplicate name')",
        '',
      ],
      ['nesting has a limit', "if (depth > this.#maxDepth) throw new JsonError('nested too deep')", ''],
    ],
  ),
  ...within(
    'src/http/token-in-target.ts',
    ['test/unit/http/token-in-target.test.ts'],
    [
      [
        'an access_token in the query is refused',
        "if (hasAccessTokenParameter(query)) throw refused('the query has an access_token')",
        '',
      ],
      [
        'so it is when its name is encoded',
        'decoded(equals === -1 ? pair : pair.slice(0, equals)).toLowerCase()',
        '(equals === -1 ? pair : pair.slice(0, equals)).toLowerCase()',
      ],
      [
        'a token in the path is refused',
        'credentials.length >= MIN_LENGTH_IN_PATH && contains(path, credentials)',
        'credentials.length < MIN_LENGTH_IN_PATH && contains(path, credentials)',
      ],
    ],
  ),
]
