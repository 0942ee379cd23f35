import type { Mutation } from './mutation.ts'

const guard = ['test/unit/net/guard-rules.test.ts']
const keys = ['test/unit/authenticate/key-bounds.test.ts']

/** Who is believed, which addresses are reached, and whose credential is whose: `authenticate`, `net`, `obtain`. */
export const GUARDS: readonly Mutation[] = [
  {
    rule: 'an exchanged token belongs to one token of the caller',
    file: 'src/obtain/token-exchange.ts',
    find: '[audience, scope, caller.tokenDigest]',
    replace: '[audience, scope]',
    tests: ['test/unit/obtain/token-exchange-refusal.test.ts', 'test/unit/obtain/token-exchange-request.test.ts'],
  },
  {
    rule: 'what was obtained with another secret has another key',
    file: 'src/obtain/cached.ts',
    find: 'hashKey([scope.config, configHash, secrets, caller.issuer',
    replace: 'hashKey([scope.config, configHash, caller.issuer',
    tests: ['test/unit/obtain/cache-key.test.ts'],
  },
  {
    rule: 'of the addresses of a name only those that may be reached are tried',
    file: 'src/net/guard.ts',
    find: 'addresses.filter((address) => check(hostname, address))',
    replace: 'addresses.some((address) => check(hostname, address)) ? addresses : []',
    tests: guard,
  },
  {
    rule: 'loopback is for loopback names',
    file: 'src/net/guard.ts',
    find: 'return allowsLoopback && isLoopbackHost(hostname)',
    replace: 'return allowsLoopback',
    tests: guard,
  },
  {
    rule: 'the system roots do not stand in for a CA that cannot be read',
    file: 'src/net/outbound.ts',
    find: '(caCert !== undefined && ca === undefined) ||',
    replace: '',
    tests: guard,
  },
  {
    rule: 'claims are looked at again after slow keys',
    file: 'src/authenticate/verify-jwt.ts',
    find: '  if (rule !== undefined) return refusedByRule(rule)\n  const claims = jwt.payload',
    replace: '  const claims = jwt.payload',
    tests: keys,
  },
  {
    rule: 'one key under two names is one',
    file: 'src/oauth/key-set.ts',
    find: 'new Map(named.map((key) => [key.material, key]))',
    replace: 'new Map(named.map((key, index) => [`${key.material} ${index}`, key]))',
    tests: ['test/unit/authenticate/token-keys.test.ts'],
  },
  {
    rule: 'an RSA key has at most 8192 bits',
    file: 'src/oauth/key-set.ts',
    find: '&& modulusLength <= MAX_RSA_BITS ',
    replace: '',
    tests: keys,
  },
]
