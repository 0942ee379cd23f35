import type { Mutation } from './mutation.ts'

/** What the embedded authorization server gives out, and to whom: `authserver`. */
export const ISSUING: readonly Mutation[] = [
  {
    rule: 'a code is of its client',
    file: 'src/authserver/tokens/token-service.ts',
    find: 'if (found === undefined || found.grant.clientId !== client.id)',
    replace: 'if (found === undefined)',
    tests: ['test/authserver/redeem.test.ts', 'test/authserver/refresh.test.ts'],
  },
  {
    rule: 'the redirect URI is that of the request',
    file: 'src/authserver/tokens/token-service.ts',
    find: 'checkRedirectUri(parameters.redirect_uri, grant)\n',
    replace: '',
    tests: ['test/authserver/redeem.test.ts', 'test/authserver/refresh.test.ts'],
  },
  {
    rule: 'the verifier is checked',
    file: 'src/authserver/tokens/token-service.ts',
    find: '    checkVerifier(verifier, grant.challenge)\n',
    replace: '',
    tests: ['test/authserver/redeem.test.ts', 'test/authserver/refresh.test.ts'],
  },
  {
    rule: 'the verifier is that of the challenge',
    file: 'src/authserver/tokens/token-service.ts',
    find: 'if (computed.length !== challenge.length || !timingSafeEqual(Buffer.from(computed), Buffer.from(challenge)))',
    replace: 'if (computed.length !== challenge.length)',
    tests: ['test/authserver/redeem.test.ts', 'test/authserver/refresh.test.ts'],
  },
  {
    rule: 'a verifier is long enough',
    file: 'src/authserver/tokens/token-service.ts',
    find: 'if (!VERIFIER.test(verifier))',
    replace: "if (verifier === '')",
    tests: ['test/authserver/redeem.test.ts', 'test/authserver/refresh.test.ts'],
  },
  {
    rule: 'a code that comes again after its tokens ends the login',
    file: 'src/authserver/tokens/token-service.ts',
    find: "if (found.isRedeemed) return replayed('code', found.grant.tsid, client)",
    replace: '',
    tests: ['test/authserver/redeem.test.ts', 'test/authserver/refresh.test.ts'],
  },
  {
    rule: 'a resource is not widened',
    file: 'src/authserver/tokens/token-service.ts',
    find: 'checkResource(parameters.resource, grant.resource, resources)\n    const scope = narrowed(parameters.scope, grant.scope)',
    replace: 'const scope = narrowed(parameters.scope, grant.scope)',
    tests: ['test/authserver/redeem.test.ts', 'test/authserver/refresh.test.ts'],
  },
  {
    rule: 'nor at a refresh',
    file: 'src/authserver/tokens/token-service.ts',
    find: 'checkResource(parameters.resource, family.resource, resources)\n',
    replace: '',
    tests: ['test/authserver/redeem.test.ts', 'test/authserver/refresh.test.ts'],
  },
  {
    rule: 'scopes are not widened',
    file: 'src/authserver/tokens/token-service.ts',
    find: 'if (scope.some((one) => !granted.includes(one)))',
    replace: 'if (scope.length > 99)',
    tests: ['test/authserver/redeem.test.ts', 'test/authserver/refresh.test.ts'],
  },
  {
    rule: 'a refresh token of another client ends the login',
    file: 'src/authserver/tokens/token-service.ts',
    find: "if (standing === 'stale' || family.clientId !== client.id) return",
    replace: "if (standing === 'stale') return",
    tests: ['test/authserver/redeem.test.ts', 'test/authserver/refresh.test.ts'],
  },
  {
    rule: 'a refresh token that is used again ends the login',
    file: 'src/authserver/tokens/token-service.ts',
    find: "if (standing === 'stale' || family.clientId !== client.id) return",
    replace: 'if (family.clientId !== client.id) return',
    tests: ['test/authserver/redeem.test.ts', 'test/authserver/refresh.test.ts'],
  },
  {
    rule: 'a token ends with its family',
    file: 'src/authserver/tokens/token-service.ts',
    find: 'Math.max(1_000, Math.min(lifespans.accessMs, grant.endsAtMs - nowMs))',
    replace: 'lifespans.accessMs',
    tests: ['test/authserver/redeem.test.ts', 'test/authserver/refresh.test.ts'],
  },
]
