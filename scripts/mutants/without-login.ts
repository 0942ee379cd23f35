import type { Mutation } from './mutation.ts'

const REFUSED = ['test/authserver/grants/id-jag-refused.test.ts']
const CREDENTIALS = ['test/authserver/grants/client-credentials.test.ts']
const ASSERTIONS = 'src/authserver/grants/identity-assertions.ts'
const CHECKS = 'src/authserver/grants/assertion.ts'

/** What the embedded authorization server gives out without a login: `authserver/grants`. */
export const WITHOUT_LOGIN: readonly Mutation[] = [
  {
    rule: 'an identity assertion says that it is one',
    file: ASSERTIONS,
    find: 'if (type !== ID_JAG) throw',
    replace: "if (type === 'none') throw",
    tests: REFUSED,
  },
  {
    rule: 'an identity assertion is shown by a confidential client',
    file: ASSERTIONS,
    find: '      checkClient(client)\n',
    replace: '',
    tests: REFUSED,
  },
  {
    rule: 'an identity assertion is for us alone',
    file: ASSERTIONS,
    find: '      checkAudience(claims, options.issuer)\n',
    replace: '',
    tests: REFUSED,
  },
  {
    rule: 'an identity assertion is shown by the client that it was made for',
    file: ASSERTIONS,
    find: '      checkClientId(claims.client_id, client, known.issuer)\n',
    replace: '',
    tests: REFUSED,
  },
  {
    rule: 'an identity assertion says when it was made',
    file: ASSERTIONS,
    find: "      if (claims.iat === undefined) throw new RefusedAssertion('iat is missing')\n",
    replace: '',
    tests: REFUSED,
  },
  {
    rule: 'an identity assertion has an identifier',
    file: ASSERTIONS,
    find: '      checkIdentifier(claims)\n',
    replace: '',
    tests: REFUSED,
  },
  {
    rule: 'an identity assertion that is bound to a key is not good without it',
    file: ASSERTIONS,
    find: '      checkUnbound(claims)\n',
    replace: '',
    tests: REFUSED,
  },
  {
    rule: 'an identity assertion is signed by its issuer',
    file: ASSERTIONS,
    find: '      await checkSigned(assertion, known.keys.keys)\n',
    replace: '',
    tests: REFUSED,
  },
  {
    rule: 'an identity assertion that ended while keys were fetched has ended',
    file: ASSERTIONS,
    find: '      // Waiting for keys took time.\n      checkTimes(claims, clock.now(), MOST_AHEAD_MS)\n',
    replace: '',
    tests: REFUSED,
  },
  {
    rule: 'a request names no other resource than its assertion',
    file: ASSERTIONS,
    find: 'if (asked.url !== named.url)',
    replace: "if (asked.url === '')",
    tests: REFUSED,
  },
  {
    rule: 'an assertion that ended is not taken',
    file: CHECKS,
    find: 'if (now - TOLERANCE_SECONDS >= exp)',
    replace: 'if (exp <= 0)',
    tests: REFUSED,
  },
  {
    rule: 'an assertion ends soon',
    file: CHECKS,
    find: 'if (exp > now + mostMs / 1_000 + TOLERANCE_SECONDS)',
    replace: 'if (exp === Infinity)',
    tests: REFUSED,
  },
  {
    rule: 'an assertion for somebody else too is not taken',
    file: CHECKS,
    find: 'Array.isArray(aud) && aud.length === 1',
    replace: 'Array.isArray(aud)',
    tests: REFUSED,
  },
  {
    rule: 'scopes are those that client, assertion and resource have',
    file: 'src/authserver/grants/targets.ts',
    find: 'scopes.includes(scope) && limits.every((limit) => limit === undefined || limit.includes(scope))',
    replace: 'scopes.includes(scope) && limits.length > 0',
    tests: CREDENTIALS,
  },
  {
    rule: 'a client gets tokens for its resources',
    file: 'src/authserver/grants/targets.ts',
    find: 'if (resource === undefined || !takesIn(bounds, resource, names))',
    replace: 'if (resource === undefined)',
    tests: CREDENTIALS,
  },
  {
    rule: 'who registered itself gets no token for itself',
    file: 'src/authserver/grants/without-login.ts',
    find: "if (kind !== 'configured' || bounds === undefined)",
    replace: 'if (bounds === undefined && kind === undefined)',
    tests: CREDENTIALS,
  },
  {
    rule: 'nobody reaches an upstream token without a login',
    file: 'src/obtain/token-to-show.ts',
    find: 'if (holder === undefined) return true',
    replace: 'return true',
    tests: ['test/obtain/upstream-without-login.test.ts'],
  },
  {
    rule: 'a token of ours names its session or a grant that needs none',
    file: 'src/core/grant-claim.ts',
    find: "typeof grant !== 'string' || !Object.hasOwn(HOLDERS, grant)",
    replace: 'grant === undefined',
    tests: ['test/e2e/authserver/without-login.test.ts'],
  },
]
