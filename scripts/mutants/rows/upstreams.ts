import { within } from '../mutation.ts'

/** Guards of `src/upstreams`. */
export default [
  ...within(
    'src/upstreams/mcp.ts',
    ['test/unit/upstreams/mcp.test.ts'],
    [
      [
        'a refresh token goes only to the server that issued it',
        'if (!isSubjectAt(subject, at.server.issuer))\n        throw',
        "if (subject === '')\n        throw",
      ],
      ['a token is revoked only at the server that issued it', 'if (!isSubjectAt(subject, server.issuer)) return', ''],
      [
        'a code goes only to the server that issued it',
        'redirect.sentTo !== undefined && redirect.sentTo !== origin + pathname',
        "redirect.sentTo === ''",
      ],
    ],
  ),
  ...within(
    'src/upstreams/discovery.ts',
    ['test/unit/oauth/client-auth.test.ts'],
    [
      [
        'aliases are for who shows a certificate',
        'isMutualTls ? withAliases(document) : document',
        'withAliases(document)',
      ],
      [
        'a plain http endpoint gets no token to revoke',
        "unlessUnusable(() => endpointOf(own, 'revocation_endpoint', issuer))",
        "document['revocation_endpoint'] as string | undefined",
        ['test/unit/upstreams/revoke.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/upstreams/mcp.ts',
    ['test/slow/connections/failures.test.ts'],
    [
      ['the issuer of a remote MCP server is compared exactly', 'isExactIssuer: true,', ''],
      ['metadata of remote servers are small', 'undefined, MOST_PAGE_BYTES)', 'undefined, undefined)'],
    ],
  ),
  ...within(
    'src/upstreams/id-token.ts',
    ['test/unit/upstreams/failures.test.ts'],
    [
      [
        'an ID token is signed by the identity provider',
        "if (check !== 'good') throw",
        "if (check === 'unknown_key') throw",
      ],
      ['an ID token is signed as the identity provider says that it signs', ' || !algorithms.has(alg)', ''],
      [
        'an ID token is for this login',
        'if (rules.nonce !== undefined && nonce !== rules.nonce)',
        "if (rules.nonce === '')",
      ],
      [
        'an ID token is over when its end and the tolerance are reached',
        'exp + tolerance.expiredSeconds <= now',
        'exp + tolerance.expiredSeconds < now',
      ],
      [
        'who it is stands in the claim that the configuration names',
        "subjectClaim === 'sub' ? own : nameIn(claims, subjectClaim)",
        'own',
        ['test/unit/authserver/identity.test.ts'],
      ],
      [
        'a claim that says who it is is a text',
        "if (typeof name === 'string' && name.trim() !== '' && name.length <= MAX_SUBJECT_LENGTH) return name",
        "if (name !== undefined && name !== '') return String(name)",
        ['test/unit/authserver/identity.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/upstreams/oauth2.ts',
    ['test/unit/upstreams/oauth2.test.ts'],
    [
      [
        'a reported user has a subject',
        "if (subject === undefined) throw unusable('user-info endpoint: no subject field has a value')",
        '',
      ],
    ],
  ),
  ...within(
    'src/upstreams/oidc.ts',
    ['test/unit/upstreams/failures.test.ts'],
    [
      [
        'user info is about the user of the ID token',
        'if (answer.subject !== sub) throw',
        "if (answer.subject === '') throw",
      ],
      [
        'an e-mail of user info is not the verified one of the ID token',
        "if (signed['email_verified'] === undefined && merged['email'] !== userInfo['email']) delete merged['email_verified']",
        '',
        ['test/unit/upstreams/oidc.test.ts'],
      ],
      [
        'user info of another subject is rejected',
        "if (answer.subject !== sub) throw unusable('user-info endpoint: sub differs from the ID token')",
        '',
      ],
      [
        'signed claims take precedence over user info',
        'Object.assign(Object.create(null) as Record<string, ClaimValue>, userInfo, signed)',
        'Object.assign(Object.create(null) as Record<string, ClaimValue>, signed, userInfo)',
        ['test/unit/upstreams/oidc.test.ts'],
      ],
      [
        'a login without an ID token is none',
        "if (idToken === undefined) throw unusable('token endpoint: the response has no id_token')",
        "if (idToken === undefined) return { sub: '', subject: '', claims: NO_CLAIMS, expiresAtMs: 0 }",
      ],
      [
        'an ID token of a refresh of another user ends the session',
        'if (verified.subject !== subject)\n',
        "if (verified.subject === '')\n",
        ['test/slow/upstreams/refresh.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/upstreams/registered-client.ts',
    ['test/unit/authserver/upstream-registration.test.ts'],
    [
      [
        'an upstream that refuses to register us is not asked by each login',
        'if (isDuring(failed, clock.now()))',
        'if (isDuring(failed, -1))',
      ],
      [
        'an upstream that forgets us at once is not asked again at once',
        'if (isDuring({ sinceMs: atMs, untilMs: atMs + LEAST_AGE_MS }, clock.now())) return',
        '',
      ],
      [
        'a rejected registration is reported by its code alone',
        'error !== undefined && /^[a-z_]{1,64}$/.test(error)',
        'error !== undefined',
      ],
    ],
  ),
  ...within(
    'src/upstreams/token-endpoint.ts',
    ['test/unit/oauth/client-auth.test.ts'],
    [
      [
        'assertions are for the server, whichever endpoint they are shown to',
        'authenticate: () => authenticate({ url, issuer })',
        'authenticate: () => authenticate({ url: to, issuer })',
      ],
    ],
  ),
  ...within(
    'src/upstreams/token-identity.ts',
    ['test/unit/authserver/identity.test.ts'],
    [
      [
        'a login requires a subject in the token response',
        'if (subject === undefined) throw unusable(`${WHERE}: no subject at subjectPath`)',
        "if (subject === undefined) return { subject: 'nobody', claims: Object.freeze({ sub: 'nobody' }) }",
      ],
    ],
  ),
  ...within(
    'src/upstreams/upstream-client.ts',
    ['test/unit/oauth/client-auth.test.ts'],
    [
      [
        'only the configured method is used at an upstream',
        "config.clientAuth === undefined && auth.method === 'clientSecretBasic'",
        "auth.method === 'clientSecretBasic'",
      ],
    ],
  ),
  ...within(
    'src/upstreams/user-info.ts',
    ['test/unit/upstreams/oauth2.test.ts'],
    [
      [
        'an e-mail is verified only where it is the one that was',
        "if (email?.field !== 'email') delete claims['email_verified']",
        '',
      ],
      [
        'a configured header never replaces the token',
        'headers: { ...lowerCased(additionalHeaders ?? {}), authorization: `Bearer ${accessToken.reveal()}` }',
        'headers: { authorization: `Bearer ${accessToken.reveal()}`, ...lowerCased(additionalHeaders ?? {}) }',
        ['test/unit/upstreams/oidc.test.ts'],
      ],
    ],
  ),
]
