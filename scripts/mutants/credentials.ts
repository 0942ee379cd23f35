import type { Mutation } from './mutation.ts'

const exchanged = [
  'test/obtain/cached.test.ts',
  'test/obtain/token-exchange-key.test.ts',
  'test/obtain/recovery.test.ts',
  'test/obtain/token-exchange-load.test.ts',
  'test/obtain/token-exchange-request.test.ts',
  'test/obtain/token-exchange-response.test.ts',
]
const cached = ['test/obtain/cached.test.ts']

/** Which credential is whose: `core`, `cache`, `obtain`. */
export const CREDENTIALS: readonly Mutation[] = [
  {
    rule: 'a secret is not its JSON',
    file: 'src/core/secret.ts',
    find: '  toJSON(): string {\n    return REDACTED',
    replace: '  toJSON(): string {\n    return this.#value',
    tests: ['test/core/secret.test.ts'],
  },
  {
    rule: 'a secret is not its text',
    file: 'src/core/secret.ts',
    find: '  [Symbol.toPrimitive](): string {\n    return REDACTED',
    replace: '  [Symbol.toPrimitive](): string {\n    return this.#value',
    tests: ['test/core/secret.test.ts'],
  },
  {
    rule: 'parts of a key do not run into each other',
    file: 'src/cache/hash-key.ts',
    find: '`${part.length}:${part}`',
    replace: 'part',
    tests: ['test/cache/hash-key.test.ts'],
  },
  {
    rule: 'a credential is for one issuer',
    file: 'src/obtain/cached.ts',
    find: 'secrets, caller.issuer, caller.identity, ...plan.keyParts',
    replace: 'secrets, caller.identity, ...plan.keyParts',
    tests: cached,
  },
  {
    rule: 'a credential is for one caller',
    file: 'src/obtain/cached.ts',
    find: 'secrets, caller.issuer, caller.identity, ...plan.keyParts',
    replace: 'secrets, caller.issuer, ...plan.keyParts',
    tests: cached,
  },
  {
    rule: 'an anonymous caller gets no credential of a caller',
    file: 'src/obtain/cached.ts',
    find: "if (caller.kind === 'anonymous') {",
    replace: "if (caller.kind === 'anonymous' && config.type === 'none') {",
    tests: exchanged,
  },
  {
    rule: 'an exchanged token is for one token of the caller',
    file: 'src/obtain/token-exchange.ts',
    find: '[audience, scope, caller.tokenDigest]',
    replace: '[audience, scope]',
    tests: exchanged,
  },
  {
    rule: 'an exchanged token ends with the token that was exchanged',
    file: 'src/obtain/token-exchange.ts',
    find: 'Math.min(exchanged.expiresAtMs, shown.expiresAtMs)',
    replace: 'exchanged.expiresAtMs',
    tests: exchanged,
  },
  {
    rule: 'two claims that were changed have different session names',
    file: 'src/obtain/cloud-sts/session-name.ts',
    find: 'JSON.stringify([issuer, identity, claim])',
    replace: 'JSON.stringify([issuer, identity])',
    tests: ['test/obtain/cloud-sts/session-name.test.ts'],
  },
  {
    rule: 'two callers with the same changed claim have different session names',
    file: 'src/obtain/cloud-sts/session-name.ts',
    find: 'JSON.stringify([issuer, identity, claim])',
    replace: 'JSON.stringify([issuer, claim])',
    tests: ['test/obtain/cloud-sts/session-name.test.ts'],
  },
  {
    rule: 'a claim that looks derived is derived',
    file: 'src/obtain/cloud-sts/session-name.ts',
    find: "  if (LOOKS_DERIVED.test(legal)) changes.push('looks_derived')\n",
    replace: '',
    tests: ['test/obtain/cloud-sts/session-name.test.ts'],
  },
]
