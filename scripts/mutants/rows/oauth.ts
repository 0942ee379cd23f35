import { within } from '../mutation.ts'

/** Guards of `src/oauth`. */
export default [
  ...within(
    'src/oauth/callback.ts',
    ['test/unit/upstreams/failures.test.ts'],
    [
      [
        'an answer of another identity provider is refused',
        'iss !== undefined && iss !== issuer)',
        "iss !== undefined && iss === '')",
      ],
    ],
  ),
  ...within(
    'src/oauth/client-assertion.ts',
    ['test/unit/obtain/token-exchange-request.test.ts'],
    [['a client assertion is valid for a minute', 'const LIFETIME_SECONDS = 60', 'const LIFETIME_SECONDS = 3_600']],
  ),
  ...within(
    'src/oauth/client-authentication.ts',
    ['test/system/oauth/client-authentication.test.ts'],
    [
      ['an expired token file is not sent', 'if (!hasEnded(again)) return again', 'return again'],
      ['a renewed token file retires no credentials', '{ lasting: [] }', '{}'],
    ],
  ),
  ...within(
    'src/oauth/client-certificate.ts',
    ['test/system/oauth/client-authentication.test.ts'],
    [
      [
        'an expired client certificate is not presented',
        'if (certificate.validToDate.getTime() > clock.now()) return',
        'if (certificate.validToDate.getTime() > 0) return',
      ],
      [
        'a certificate belongs to the key that signs',
        'if (certificate.checkPrivateKey(key)) return',
        'if (certificate.publicKey !== undefined) return',
      ],
    ],
  ),
  ...within(
    'src/oauth/discovery.ts',
    ['test/unit/obtain/client-auth.test.ts'],
    [
      [
        'whatever a token endpoint that is away costs, its metadata are fetched every 30 s at most',
        'if (isDuring(lookedAgain, nowMs)) return undefined',
        '',
      ],
      [
        'aliases are for who shows a certificate, at token endpoints that are discovered, too',
        'isMutualTls ? withAliases(document) : document',
        'withAliases(document)',
      ],
      [
        'metadata are of the very issuer that was asked for',
        'isIssuer = (issuer) => issuer === issuerUrl',
        'isIssuer = (issuer) => issuer !== undefined',
        ['test/unit/authenticate/discovery.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/oauth/documents.ts',
    ['test/unit/authenticate/provider-network.test.ts'],
    [['documents are not fetched from another origin', ' || next.origin !== new URL(at).origin', '']],
  ),
  ...within(
    'src/oauth/entra-errors.ts',
    ['test/unit/obtain/obo-refusals.test.ts'],
    [
      ['identifiers of a tenant are no text', "typeof id === 'string' && ID.test(id)", "typeof id === 'string'"],
      ['a number in a text is a code only where codes stand', '/^AADSTS(', '/AADSTS('],
      ['codes of a tenant are few', 'listed.slice(0, MAX_CODES)', 'listed'],
      ['of several codes that of our configuration counts first', 'CODES.find(([number])', 'CODES.findLast(([number])'],
    ],
  ),
  ...within(
    'src/oauth/form-post.ts',
    ['test/unit/oauth/form-post.test.ts'],
    [['a form says that it is one', "'content-type': 'application/x-www-form-urlencoded', ", '']],
  ),
  ...within(
    'src/oauth/key-refreshes.ts',
    ['test/unit/authenticate/key-rotation.test.ts'],
    [
      [
        'signatures that fail under a listed key cause few fetches',
        'if (isDuring(rechecked, nowMs) || isDuring(taken, nowMs)) return false',
        '',
      ],
    ],
  ),
  ...within(
    'src/oauth/key-set.ts',
    ['test/unit/authenticate/token-keys.test.ts'],
    [
      [
        'one key under two names is one',
        'new Map(named.map((key) => [key.material, key]))',
        'new Map(named.map((key, index) => [`${key.material} ${index}`, key]))',
      ],
      [
        'an RSA key has at most 8192 bits',
        '&& modulusLength <= MAX_RSA_BITS ',
        '',
        ['test/unit/authenticate/key-bounds.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/oauth/key-store.ts',
    ['test/unit/authenticate/withdrawn-keys.test.ts'],
    [
      [
        'a key that a fetch did not bring is not fetched for again for 30 s',
        'if (known !== undefined && refreshes.wasLookedFor(key)) return known.keys',
        '',
      ],
      [
        'a fetch that was begun before a key was seen says nothing of it',
        'if (flight !== undefined && !refreshes.isLookedFor(key)) {',
        'if (flight !== undefined) return fetched()\n      {',
      ],
      ['refreshes for unknown keys are bounded', '    refreshes.take()\n', ''],
    ],
  ),
  ...within(
    'src/oauth/provider-client.ts',
    ['test/unit/oauth/client-auth.test.ts'],
    [
      [
        'assertions for introspection are for the issuer',
        'own.authenticate({ url, issuer: provider.issuerUrl })',
        'own.authenticate({ url })',
      ],
    ],
  ),
  ...within(
    'src/oauth/refusals.ts',
    ['test/unit/obtain/token-repeat.test.ts', 'test/unit/authenticate/introspection.test.ts'],
    [
      [
        'a 401 is about the client, also where it says unauthorized_client',
        "error === 'unauthorized_client' && status === 401",
        "error === 'unauthorized_client' && status === 499",
      ],
      [
        'an unknown error is not the caller’s fault',
        "?? 'exchange_failed'",
        "?? 'exchange_denied'",
        ['test/unit/oauth/token-response.test.ts'],
      ],
      [
        'no text of a server is in a refusal',
        "concernOf(error) === undefined ? 'an unknown error' : error",
        'error',
        ['test/system/login/discovery.test.ts', 'test/system/login/again.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/oauth/signature.ts',
    ['test/unit/authenticate/withdrawn-keys.test.ts'],
    [
      [
        'a signature fits its key',
        "if (error instanceof errors.JOSEError) return 'wrong'",
        "if (error instanceof errors.JOSEError) return 'good'",
        ['test/unit/authenticate/token-keys.test.ts', 'test/unit/authenticate/token-shapes.test.ts'],
      ],
      [
        'tokens with invalid signatures do not use up the refreshes',
        '!store.lists(kid)) && isSignatureLong(token, alg)',
        '!store.lists(kid))',
      ],
      ['a key that is listed and does not fit never fetches', '(kid === undefined || !store.lists(kid)) && ', ''],
    ],
  ),
  ...within(
    'src/oauth/token-endpoint.ts',
    ['test/unit/obtain/token-repeat.test.ts'],
    [['a client assertion is used once', ', again: build })', ' })']],
  ),
  ...within(
    'src/oauth/token-response.ts',
    ['test/unit/oauth/token-response.test.ts'],
    [
      ['a wrong token URL is not the caller’s fault', 'if (isNoTokenEndpoint(response)) {', 'if (status === 0) {'],
      [
        'a header takes a bearer token only',
        'if (mapping === undefined && !isTaken)',
        "if (mapping === undefined && type === '')",
        ['test/unit/obtain/client-credentials.test.ts'],
      ],
      ['an error code is no text', "ERROR_CODE.test(error) ? error : 'with an invalid error code'", 'error'],
      [
        'a response with a token and an error is not used',
        'if (name === undefined) return members',
        "if (name !== '') return members",
      ],
      [
        'a realm that is not there ends no session',
        'if (isNoTokenEndpoint(response)) {',
        'if (status === 0) {',
        ['test/slow/upstreams/refresh.test.ts'],
      ],
      [
        'a token of another type is refused',
        'tokenTypes.some((one) => one.toLowerCase() === type.toLowerCase())',
        "type !== ''",
        ['test/system/login/discovery.test.ts', 'test/system/login/again.test.ts'],
      ],
    ],
  ),
]
