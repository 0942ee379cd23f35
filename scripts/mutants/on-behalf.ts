import type { Mutation } from './mutation.ts'

const REFUSALS = ['test/unit/obtain/obo-refusals.test.ts']
const JUDGE = 'src/obtain/obo-refusals.ts'
const ISOLATION = ['test/unit/obtain/isolation.test.ts']
const OWN_TOKENS = ['test/unit/obtain/client-credentials.test.ts']
const EXPLAINED = ['test/unit/cli/explain-effects.test.ts']

/** Types `obo` and `clientCredentials`: what a tenant says of a caller, and a token of the proxy's own. */
export const ON_BEHALF: readonly Mutation[] = [
  {
    rule: 'a token got on behalf of one caller is given to no other',
    file: 'src/obtain/obo.ts',
    find: '[spec.tenantId, clientId, scope, caller.tokenDigest], notAfterMs: caller.expiresAtMs',
    replace: '[spec.tenantId, clientId, scope], notAfterMs: caller.expiresAtMs',
    tests: ISOLATION,
  },
  {
    rule: 'a token got on behalf of a caller ends with the one that was shown',
    file: 'src/obtain/obo.ts',
    find: 'scope, caller.tokenDigest], notAfterMs: caller.expiresAtMs',
    replace: 'scope, caller.tokenDigest], notAfterMs: undefined',
    tests: ['test/unit/obtain/obo.test.ts'],
  },
  {
    rule: 'a token got with that of an upstream ends with it',
    file: 'src/obtain/obo.ts',
    find: 'Math.min(usedUntilMs(expiresAtMs, sentAtMs, spec.cacheSkew), shown.expiresAtMs)',
    replace: 'usedUntilMs(expiresAtMs, sentAtMs, spec.cacheSkew)',
    tests: ['test/unit/obtain/obo-upstream.test.ts'],
  },
  {
    rule: 'a tenant that is busy says nothing else',
    file: JUDGE,
    find: "    if (busy === 'identity_provider_unavailable') return busy\n",
    replace: '',
    tests: REFUSALS,
  },
  {
    rule: 'who has no rights is not asked for again with the same token',
    file: 'src/obtain/obo-refusals.ts',
    find: "fault === 'caller_token' || fault === 'caller_rights'",
    replace: "fault === 'caller_token'",
    tests: REFUSALS,
  },
  {
    rule: 'a refused token is kept away from the tenant for ten minutes',
    file: JUDGE,
    find: 'const REFUSED_MS = 10 * 60_000',
    replace: 'const REFUSED_MS = 60_000',
    tests: REFUSALS,
  },
  {
    rule: 'identifiers of a tenant are no text',
    file: 'src/oauth/entra-errors.ts',
    find: "typeof id === 'string' && ID.test(id)",
    replace: "typeof id === 'string'",
    tests: REFUSALS,
  },
  {
    rule: 'a number in a text is a code only where codes stand',
    file: 'src/oauth/entra-errors.ts',
    find: '/^AADSTS(',
    replace: '/AADSTS(',
    tests: REFUSALS,
  },
  {
    rule: 'codes of a tenant are few',
    file: 'src/oauth/entra-errors.ts',
    find: 'listed.slice(0, MAX_CODES)',
    replace: 'listed',
    tests: REFUSALS,
  },
  {
    rule: 'claims of a challenge fit into a header',
    file: 'src/obtain/obo-refusals.ts',
    find: 'claims.length <= MAX_CLAIMS && ',
    replace: '',
    tests: REFUSALS,
  },
  {
    rule: 'a challenge is for those who can meet it',
    file: JUDGE,
    find: "(fault === 'caller_token' ? { challenge: challengeOf(code, claims, asked) } : {})",
    replace: '{ challenge: challengeOf(code, claims, asked) }',
    tests: REFUSALS,
  },
  {
    rule: 'of several codes that of our configuration counts first',
    file: 'src/oauth/entra-errors.ts',
    find: 'CODES.find(([number])',
    replace: 'CODES.findLast(([number])',
    tests: REFUSALS,
  },
  {
    rule: 'what a type would refuse a token for is explained',
    file: 'src/obtain/refused-by-token.ts',
    find: "  if (auth.type === 'obo') refuseApplication(caller.claims)\n",
    replace: '',
    tests: EXPLAINED,
  },
  {
    rule: 'an endpoint that fails is asked for our own token again at once',
    file: 'src/obtain/client-credentials.ts',
    find: 'nowMs: clock.now(), service }',
    replace: 'nowMs: clock.now() }',
    tests: ['test/unit/obtain/token-response.test.ts'],
  },
  {
    rule: 'a token is used however much earlier than it must be it is renewed',
    file: 'src/obtain/token-exchange-response.ts',
    find: 'const LEAST_USE = 0.1',
    replace: 'const LEAST_USE = 0',
    tests: OWN_TOKENS,
  },
  {
    rule: 'a token of our own is renewed as early as is said',
    file: 'src/obtain/client-credentials.ts',
    find: 'usedUntilMs(expiresAtMs, sentAtMs, spec.cacheSkew)',
    replace: 'usedUntilMs(expiresAtMs, sentAtMs, 0)',
    tests: OWN_TOKENS,
  },
  {
    rule: 'a token of our own that was got with another secret is forgotten',
    file: 'src/obtain/client-credentials.ts',
    find: '    secrets: client.secrets,\n',
    replace: '',
    tests: OWN_TOKENS,
  },
  {
    rule: 'a token of our own is nobody’s, and no purge of a caller takes it from all others',
    file: 'src/obtain/cached-own.ts',
    find: "    subject: '',\n",
    replace: "    subject: 'caller-1',\n",
    tests: OWN_TOKENS,
  },
]
