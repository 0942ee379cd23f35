import type { Mutation } from './mutation.ts'

const names = ['test/unit/storage/redis-names.test.ts']
const foreign = ['test/system/storage/redis-foreign-locks.test.ts']
const putBack = ['test/unit/authserver/put-back.test.ts']

/** The store in Redis: whom it trusts, whose a lock is, and what who writes there can bring back. */
export const STORE: readonly Mutation[] = [
  {
    rule: 'a store that throws keys away is told',
    file: 'src/storage/redis/server-look.ts',
    find: 'evicts.with().set(next === undefined || next === KEEPS ? 0 : 1)',
    replace: 'evicts.with().set(0)',
    tests: ['test/slow/e2e/store-state.test.ts'],
  },
  {
    rule: 'a store that lost what was in it is told',
    file: 'src/storage/redis/loss-watch.ts',
    find: 'if (known !== undefined && known !== mark) {',
    replace: "if (known !== undefined && known === '') {",
    tests: ['test/slow/e2e/store-state.test.ts'],
  },
  {
    rule: 'a master or sentinel shows a certificate of its own name',
    file: 'src/storage/redis/connection.ts',
    find: 'rejectUnauthorized: !tls.insecureSkipVerify,',
    replace: 'rejectUnauthorized: !tls.insecureSkipVerify,\n    checkServerIdentity: () => undefined,',
    tests: names,
  },
  {
    rule: 'what is configured for the master is not for the sentinels',
    file: 'src/storage/redis/sentinels.ts',
    find: 'const { sentinelTls: tls, masterName } = config',
    replace: 'const { masterName } = config\n    const tls = config.sentinelTls ?? (config as RedisConfig).tls',
    tests: ['test/slow/storage/redis-failover.test.ts'],
  },
  {
    rule: 'who lets go of a lock late lets go of nobody else’s',
    file: 'src/storage/redis/scripts.ts',
    find: "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end\nredis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])",
    replace: "redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])",
    tests: foreign,
  },
  {
    rule: 'who renews a lock late renews nobody else’s',
    file: 'src/storage/redis/scripts.ts',
    find: "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end\nreturn redis.call('PEXPIRE', KEYS[1], ARGV[2])",
    replace: "return redis.call('PEXPIRE', KEYS[1], ARGV[2])",
    tests: foreign,
  },
  {
    rule: 'who stores a value late lets go of nobody else’s lock',
    file: 'src/storage/redis/scripts.ts',
    find: "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end",
    replace: "redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])",
    tests: foreign,
  },
  {
    rule: 'a spent code that is put back is spent',
    file: 'src/authserver/tokens/codes.ts',
    find: 'record.isSpent || spent.peek(key) !== undefined',
    replace: 'record.isSpent',
    tests: putBack,
  },
  {
    rule: 'other replicas know of it',
    file: 'src/authserver/tokens/codes.ts',
    find: 'store.publish(CHANNEL, isRedeemed ? `${REDEEMED}${key}` : key)',
    replace: 'Promise.resolve()',
    tests: putBack,
  },
  {
    rule: 'sessions that were ended are written again by who knows of them',
    file: 'src/authserver/sessions/ended.ts',
    find: 'if (message === JOINED) restoring()',
    replace: 'if (message === JOINED) return',
    tests: putBack,
  },
  {
    rule: 'a client that somebody else wrote is none',
    file: 'src/authserver/clients/directory.ts',
    find: 'if (stored === undefined || opened === undefined) return undefined',
    replace:
      'if (stored === undefined) return undefined\n      if (opened === undefined) return readClient(stored.value)',
    tests: putBack,
  },
  {
    rule: 'a lock whose holder died holds nobody up',
    file: 'src/authserver/sessions/refresh.ts',
    find: 'const LOCK_WAIT_MS = 2_000',
    replace: 'const LOCK_WAIT_MS = 20_000',
    tests: ['test/system/authserver/sessions/refresh.test.ts'],
  },
  {
    rule: 'a key for lookups is no key for sealing',
    file: 'src/storage/seal.ts',
    find: "sealing: createSecretKey(expand('sealing', 32))",
    replace: "sealing: createSecretKey(expand('lookup', 32))",
    tests: ['test/unit/storage/seal.test.ts'],
  },
  {
    rule: 'what everybody can read of a record is of no key',
    file: 'src/storage/seal.ts',
    find: "id: expand('key id', ID_BYTES)",
    replace: "id: expand('sealing', ID_BYTES)",
    tests: ['test/unit/storage/seal.test.ts'],
  },
  {
    rule: 'each record has a key of its own',
    file: 'src/storage/seal.ts',
    find: "createHmac('sha256', sealing).update(name).digest()",
    replace: "createHmac('sha256', sealing).update(name.slice(0, 0)).digest()",
    tests: ['test/unit/storage/seal.test.ts'],
  },
]
