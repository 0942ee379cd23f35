import { within } from '../mutation.ts'

/** Guards of `src/storage`. */
export default [
  ...within(
    'src/storage/memory-collections.ts',
    ['test/slow/authserver/registered-clients.test.ts'],
    [
      [
        'registrations are bounded by their bytes together',
        ' && collection.bytes - (old?.bytes ?? 0) + bytes <= bound.bytes',
        '',
      ],
    ],
  ),
  ...within(
    'src/storage/memory-entries.ts',
    ['test/unit/storage/memory.test.ts'],
    [
      ['a full store refuses', "if (bytes - oldSize + size > maxBytes) throw new StoreError('overloaded')", ''],
      ['expired values free memory', 'if (bytes - oldSize + size > maxBytes) sweepAll()\n', ''],
      [
        'an entry is gone at its end',
        'clock.now() < entry.endMs) return entry',
        'clock.now() <= entry.endMs) return entry',
      ],
    ],
  ),
  ...within(
    'src/storage/memory-locks.ts',
    ['test/unit/storage/memory.test.ts'],
    [['a lock is released once', 'if (!isMine) return Promise.resolve()\n', '']],
  ),
  ...within(
    'src/storage/memory.ts',
    ['test/unit/storage/memory.test.ts'],
    [
      [
        'what is taken is gone',
        '        const found = stored(entries.get(key))\n        entries.delete(key)',
        '        const found = stored(entries.get(key))',
      ],
      ['what is there is not put again', 'if (entries.get(key) !== undefined) return false', ''],
      ['a write of another version is refused', 'if (oldVersion !== version || (', 'if (('],
      [
        'a write with an older fence is refused',
        'fence !== undefined && fence < oldFence',
        'fence !== undefined && fence < 0',
      ],
      ['a store that is closed takes nothing', "if (isClosed) throw new StoreError('unavailable')\n", ''],
    ],
  ),
  ...within(
    'src/storage/redis/connection.ts',
    ['test/unit/storage/redis-names.test.ts'],
    [
      [
        'a master or sentinel shows a certificate of its own name',
        'rejectUnauthorized: !tls.insecureSkipVerify,',
        'rejectUnauthorized: !tls.insecureSkipVerify,\n    checkServerIdentity: () => undefined,',
      ],
    ],
  ),
  ...within(
    'src/storage/redis/loss-watch.ts',
    ['test/slow/e2e/store-state.test.ts'],
    [
      [
        'a store that lost its data is reported',
        'if (known !== undefined && known !== mark) {',
        "if (known !== undefined && known === '') {",
      ],
    ],
  ),
  ...within(
    'src/storage/redis/scripts.ts',
    ['test/system/storage/redis-foreign-locks.test.ts'],
    [
      [
        'those in Redis too',
        ' or sum() - old + ARGV[5] > tonumber(ARGV[4]) do',
        ' do',
        ['test/system/storage/redis.test.ts'],
      ],
      [
        'a late release does not release another’s lock',
        "if read('GET', KEYS[1]) ~= ARGV[1] then return 0 end\nredis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])",
        "redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])",
      ],
      [
        'a late renewal does not renew another’s lock',
        "if read('GET', KEYS[1]) ~= ARGV[1] then return 0 end\nreturn redis.call('PEXPIRE', KEYS[1], ARGV[2])",
        "return redis.call('PEXPIRE', KEYS[1], ARGV[2])",
      ],
      [
        'a late write does not release another’s lock',
        "if read('GET', KEYS[1]) == ARGV[1] then redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end",
        "redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])",
      ],
    ],
  ),
  ...within(
    'src/storage/redis/sentinels.ts',
    ['test/slow/storage/redis-failover.test.ts'],
    [
      [
        'what is configured for the master is not for the sentinels',
        'const { sentinelTls: tls, masterName } = config',
        'const { masterName } = config\n    const tls = config.sentinelTls ?? (config as RedisConfig).tls',
      ],
    ],
  ),
  ...within(
    'src/storage/redis/server-look.ts',
    ['test/slow/e2e/store-state.test.ts'],
    [
      [
        'a store that evicts keys is reported',
        'evicts.with().set(next === undefined || next === KEEPS ? 0 : 1)',
        'evicts.with().set(0)',
      ],
    ],
  ),
  ...within(
    'src/storage/seal.ts',
    ['test/unit/storage/seal.test.ts'],
    [
      [
        'who can look up can not open',
        "lookup: createSecretKey(expand('lookup', 32))",
        "lookup: createSecretKey(expand('sealing', 32))",
      ],
      [
        'a key for lookups is no key for sealing',
        "sealing: createSecretKey(expand('sealing', 32))",
        "sealing: createSecretKey(expand('lookup', 32))",
      ],
      [
        'the readable part of a record reveals no key',
        "id: expand('key id', ID_BYTES)",
        "id: expand('sealing', ID_BYTES)",
      ],
      [
        'each record has a key of its own',
        "createHmac('sha256', sealing).update(name).digest()",
        "createHmac('sha256', sealing).update(name.slice(0, 0)).digest()",
      ],
      ['another format is not opened', ' || sealed[0] !== FORMAT) return', ') return'],
      [
        'an unknown key id causes a read of the secrets at most each second',
        'if (isDuring(refreshed, clock.now())) return Promise.resolve()',
        '',
      ],
      ['values sealed with an older secret are sealed again', 'isCurrent: entry === first()', 'isCurrent: true'],
      [
        'each record is sealed by a key of its own',
        "createHmac('sha256', sealing).update(name).digest()",
        "createHmac('sha256', sealing).digest()",
      ],
      ['a keyed hash knows its kind', '`${kind.length}:${kind}${secret}`', '`${kind}${secret}`'],
    ],
  ),
  ...within(
    'src/storage/subscriptions.ts',
    ['test/unit/storage/stores.test.ts'],
    [['who listened to memory goes with the store', 'for (const subscription of open) subscription.close()', '']],
  ),
  ...within(
    'src/storage/file.ts',
    ['test/unit/storage/file.test.ts'],
    [
      [
        'a write is on disk before it resolves',
        'if (hasChanged(result)) await saved()',
        'if (hasChanged(result)) void saved()',
      ],
      [
        'a failed read releases the directory',
        '      await release?.()\n      refuse(`${STORE_FILE} is damaged',
        '      refuse(`${STORE_FILE} is damaged',
      ],
    ],
  ),
]
