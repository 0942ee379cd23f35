import type { Mutation } from './mutation.ts'

const leaving = ['test/authserver/leaving.test.ts']
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
  {
    rule: 'nobody is sent to a client that they have never let in',
    file: 'src/authserver/login/authorize.ts',
    find: 'if (isExpected) return',
    replace: "if (isExpected || url !== '') return",
    tests: leaving,
  },
  {
    rule: 'a client that was let in is known by its redirect address too',
    file: 'src/authserver/login/remembered.ts',
    find: 'shortHash(hashKey([client.id, portless(redirectUri) ?? redirectUri])).slice',
    replace: 'shortHash(hashKey([client.id])).slice',
    tests: leaving,
  },
  {
    rule: 'consent is for one redirect address',
    file: 'src/authserver/login/remembered.ts',
    find: 'hashKey([client.id, portless(redirectUri) ?? redirectUri, scope.',
    replace: 'hashKey([client.id, scope.',
    tests: ['test/authserver/consent.test.ts'],
  },
  {
    rule: 'marks of a name are not painted over other lines',
    file: 'src/authserver/pages/html.ts',
    find: "    .replace(STACKED, '$1\\u{FFFD}')\n",
    replace: '',
    tests: ['test/authserver/consent.test.ts'],
  },
  {
    rule: 'a name has a place of its own',
    file: 'src/authserver/pages/layout.ts',
    find: 'max-height:4.5rem;overflow:hidden auto',
    replace: '',
    tests: ['test/authserver/chromium/pages.test.ts'],
  },
]
