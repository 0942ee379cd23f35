import { jobClaims, jobToken } from './workload-rig.ts'
import { type Kind, rowsOf, type Wrong, wrongOf } from './wrong-assertions.ts'

const KIND: Kind = { typ: 'JWT', claims: jobClaims, make: jobToken, aud: /^aud must be this server only$/ }
const { claims, header } = rowsOf(KIND)
const NO_ENTRY = /^no entry of workloads matches its claims$/
const PERSON = /^it is about a person/

/** Tokens of workloads that differ from a right one in one thing. */
export const WRONG_WORKLOADS: readonly Wrong[] = [
  header('typ of an access token', /^typ is not/, { typ: 'at+jwt' }),
  header('typ of a logout token', /^typ is not/, { typ: 'logout+jwt' }),
  header('typ of a client assertion', /^typ is not/, { typ: 'client-authentication+jwt' }),
  header('typ that only begins so', /^typ is not/, { typ: 'JWT2' }),
  header('an empty typ', /^typ is not/, { typ: '' }),
  header('typ that is a number', /^typ is not a string$/, { typ: 1 }),
  claims('aud the revocation endpoint', KIND.aud, (rig) => ({ aud: `${rig.issuer}/oauth/revoke` })),
  claims('another repository', NO_ENTRY, () => ({ repository: 'acme/other' })),
  claims('another branch', NO_ENTRY, () => ({ ref: 'refs/heads/feature' })),
  claims('a repository in a list', /wrong type|no entry/, () => ({ repository: ['acme/reports'] })),
  claims('no repository', /^no entry .*; workloads\[0\]: there is no such key$/, () => ({
    repository: undefined,
  })),
  claims('a life of more than its bound', /^its lifetime is more than 10 minutes$/, (rig) => ({
    iat: Math.floor(rig.clock.now() / 1_000) - 400,
  })),
  claims('nonce of a login', PERSON, () => ({ nonce: 'x' })),
  claims('auth_time of a login', PERSON, () => ({ auth_time: 1 })),
  claims('at_hash of an ID token', PERSON, () => ({ at_hash: 'x' })),
  claims('c_hash of an ID token', PERSON, () => ({ c_hash: 'x' })),
  claims('events of a logout', PERSON, () => ({ events: {} })),
  ...wrongOf(KIND),
]
