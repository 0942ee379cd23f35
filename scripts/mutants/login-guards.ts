import type { Mutation } from './mutation.ts'

const registration = ['test/authserver/registered-clients.test.ts']

/** What keeps strangers out of logins, and logins apart: `authserver`. */
export const LOGIN_GUARDS: readonly Mutation[] = [
  {
    rule: 'a registration holds 8 KiB at most',
    file: 'src/authserver/clients/directory.ts',
    find: 'if (record.length > CLIENT_BYTES)',
    replace: 'if (record.length > 8 * CLIENT_BYTES)',
    tests: registration,
  },
  {
    rule: 'registrations are bounded by their bytes together',
    file: 'src/storage/memory-collections.ts',
    find: ' && collection.bytes - (old?.bytes ?? 0) + bytes <= bound.bytes',
    replace: '',
    tests: registration,
  },
  {
    rule: 'those in Redis too',
    file: 'src/storage/redis/scripts.ts',
    find: ' or sum() - old + ARGV[5] > tonumber(ARGV[4]) do',
    replace: ' do',
    tests: ['test/storage/redis.test.ts'],
  },
]
