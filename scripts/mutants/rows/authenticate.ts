import { within } from '../mutation.ts'

/** Guards of `src/authenticate`. */
export default [
  ...within(
    'src/authenticate/accept.ts',
    ['test/slow/e2e/kept-tokens.test.ts'],
    [
      [
        'a cached caller does not hold the token',
        '    claims,\n    expiresAtMs,',
        '    claims,\n    ...{ token },\n    expiresAtMs,',
      ],
    ],
  ),
  ...within(
    'src/authenticate/authenticator.ts',
    ['test/slow/e2e/authserver/revoked.test.ts'],
    [
      [
        'streams know who issued the token of their caller',
        'isRevoked: (caller) => own?.isRevoked(caller) === true,',
        'isRevoked: () => own === undefined,',
      ],
    ],
  ),
  ...within(
    'src/authenticate/claim-rules.ts',
    ['test/unit/authenticate/token-claims.test.ts'],
    [
      [
        'a token is of the issuer',
        '!rules.isIntrospected : iss !== rules.issuer',
        '!rules.isIntrospected : false',
        ['test/unit/authenticate/claim-rules.test.ts'],
      ],
      [
        'a token is for this audience, exactly',
        "if (typeof aud === 'string') return aud === audience",
        "if (typeof aud === 'string') return aud.startsWith(audience)",
      ],
      ['an audience that is no string spoils the list', '(aud as readonly ClaimValue[]).every(isString) && ', ''],
      ['a token without an end is refused', "if (exp === undefined && !rules.isIntrospected) return 'exp_missing'", ''],
      [
        'a token is over when its end is reached',
        'rules.tolerance.expiredSeconds >= exp',
        'rules.tolerance.expiredSeconds > exp',
      ],
      ['a token is not good before its time', "if (latest < nbf) return 'nbf_early'", ''],
      [
        'a token was not issued in the future',
        "return typeof iat === 'number' && latest < iat ? 'iat_early' : undefined",
        'return undefined',
      ],
      ['a subject is a string', "if (sub !== undefined && typeof sub !== 'string') return 'sub_malformed'", ''],
    ],
  ),
  ...within(
    'src/authenticate/recent-tokens.ts',
    ['test/slow/authenticate/introspection-shares.test.ts'],
    [
      [
        'tokens that were good lately come before tokens never seen',
        'if (caller !== undefined) return { caller, token }',
        '',
      ],
      ['an IPv6 network is one peer', 'peer === undefined ? token : networkOf(peer)', 'peer ?? token'],
    ],
  ),
  ...within(
    'src/authenticate/provider.ts',
    ['test/unit/authenticate/missing-keys.test.ts'],
    [['what a provider answers after it was removed is in no metric', '      health.close()\n', '']],
  ),
  ...within(
    'src/authenticate/results.ts',
    ['test/unit/authenticate/results.test.ts'],
    [
      [
        'a caller is taken at his word no longer when the clock was set back',
        'isDuring(entry, clock.now()) ? entry.caller : undefined',
        'entry?.caller',
      ],
      [
        'a refused token is not asked about again for 10 s',
        'const REFUSED_KEPT_MS = 10_000',
        'const REFUSED_KEPT_MS = 0',
      ],
    ],
  ),
  ...within(
    'src/authenticate/route-authenticate.ts',
    ['test/unit/authenticate/route-authenticate.test.ts'],
    [['a token that is bound to a key is no bearer token', 'if (!allowBoundTokens) refuseBoundToken(caller)', '']],
  ),
  ...within(
    'src/authenticate/verify-jwt.ts',
    ['test/unit/authenticate/token-algorithms.test.ts'],
    [
      [
        'algorithms are those of the list',
        "if (typeof alg !== 'string' || !ALGORITHMS.has(alg)) return 'alg_refused'",
        "if (typeof alg !== 'string') return 'alg_refused'",
      ],
      [
        'an extension that is not understood is refused',
        "if (crit !== undefined) return 'crit_unknown'",
        '',
        [
          'test/unit/authenticate/token-algorithms.test.ts',
          'test/unit/authenticate/token-shapes.test.ts',
          'test/unit/authenticate/token-keys.test.ts',
        ],
      ],
    ],
  ),
  ...within(
    'src/authenticate/verify-jwt.ts',
    ['test/unit/authenticate/results.test.ts'],
    [
      [
        'a token that came early is looked at again as soon as it may be good',
        '(begins - early) * 1000',
        'begins * 1000',
      ],
      [
        'claims are looked at again after slow keys',
        '  if (rule !== undefined) return refusedByRule(rule)\n',
        '',
        ['test/unit/authenticate/slow-keys.test.ts'],
      ],
      [
        'claims are looked at again after slow keys',
        '  if (rule !== undefined) return refusedByRule(rule)\n  const claims = jwt.payload',
        '  const claims = jwt.payload',
        ['test/unit/authenticate/key-bounds.test.ts'],
      ],
    ],
  ),
]
