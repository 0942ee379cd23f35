import type { Mutation } from './mutation.ts'

const refreshed = ['test/authserver/refresh.test.ts']
const sessions = ['test/authserver/sessions/refresh.test.ts']
const assertions = ['test/authserver/strict-clients.test.ts']
const failures = ['test/authserver/upstreams/failures.test.ts']

/** Who is logged in, and who has what of it: `authserver`. */
export const LOGINS: readonly Mutation[] = [
  {
    rule: 'PKCE is S256 and nothing else',
    file: 'src/authserver/login/login-request.ts',
    find: "if (one(parameters, 'code_challenge_method') !== 'S256')",
    replace: "if (one(parameters, 'code_challenge_method') === '')",
    tests: ['test/authserver/authorize-parameters.test.ts'],
  },
  {
    rule: 'a form of another browser or site is worth nothing',
    file: 'src/authserver/login/consent.ts',
    find: '|| !isFlowOf(flow, ticket.flow.digest))',
    replace: ')',
    tests: ['test/authserver/binding.test.ts'],
  },
  {
    rule: 'an answer of another identity provider is refused',
    file: 'src/authserver/upstreams/callback.ts',
    find: 'iss !== undefined && iss !== issuer)',
    replace: "iss !== undefined && iss === '')",
    tests: failures,
  },
  {
    rule: 'an ID token is signed by the identity provider',
    file: 'src/authserver/upstreams/id-token.ts',
    find: "if (check !== 'good') throw",
    replace: "if (check === 'unknown_key') throw",
    tests: failures,
  },
  {
    rule: 'an ID token is signed as the identity provider says that it signs',
    file: 'src/authserver/upstreams/id-token.ts',
    find: ' || !algorithms.has(alg)',
    replace: '',
    tests: failures,
  },
  {
    rule: 'metadata are of the very issuer that was asked for',
    file: 'src/oauth/discovery.ts',
    find: "if (document['issuer'] !== issuerUrl) throw",
    replace: "if (document['issuer'] === undefined) throw",
    tests: ['test/authenticate/discovery.test.ts'],
  },
  {
    rule: 'documents are not fetched from another origin',
    file: 'src/oauth/documents.ts',
    find: ' || next.origin !== new URL(at).origin',
    replace: '',
    tests: ['test/authenticate/provider-network.test.ts'],
  },
  {
    rule: 'an ID token is for this login',
    file: 'src/authserver/upstreams/id-token.ts',
    find: 'if (rules.nonce !== undefined && nonce !== rules.nonce)',
    replace: "if (rules.nonce === '')",
    tests: failures,
  },
  {
    rule: 'a code is redeemed once',
    file: 'src/authserver/tokens/codes.ts',
    find: 'const isOurs = await store.compareAndSet(key, version, records.write(key, traceOf(grant, false)), lifespanMs)',
    replace:
      'await store.put(key, records.write(key, traceOf(grant, false)), lifespanMs)\n      const isOurs = version !== ""',
    tests: ['test/authserver/two-replicas.test.ts'],
  },
  {
    rule: 'the refresh token before is good for 30 s',
    file: 'src/authserver/tokens/families.ts',
    find: 'isPrevious && nowMs <= record.rotatedAtMs + GRACE_MS',
    replace: 'isPrevious',
    tests: refreshed,
  },
  {
    rule: 'nobody revokes the login of another client',
    file: 'src/authserver/library/provider.ts',
    find: 'allowedPolicy: (_ctx, client, token) => token.clientId === client.clientId',
    replace: 'allowedPolicy: () => true',
    tests: refreshed,
  },
  {
    rule: 'an assertion ends',
    file: 'src/authserver/library/provider.ts',
    find: "if (nowSeconds - TOLERANCE_SECONDS >= exp) return 'the assertion has expired'",
    replace: '',
    tests: assertions,
  },
  {
    rule: 'an assertion is not valid before its time',
    file: 'src/authserver/library/provider.ts',
    find: "if (Math.max(nbf, iat) > nowSeconds + TOLERANCE_SECONDS) return 'the assertion is not valid yet'",
    replace: '',
    tests: assertions,
  },
  {
    rule: 'an assertion is for this server alone',
    file: 'src/authserver/library/provider.ts',
    find: 'if (!audiences.every((audience) => own.has(audience)))',
    replace: 'if (!audiences.some((audience) => own.has(audience)))',
    tests: assertions,
  },
  {
    rule: 'a session is of one client',
    file: 'src/authserver/sessions/token-use.ts',
    find: "if (session.subject === subject && session.clientId === claims['client_id']) return",
    replace: 'if (session.subject === subject) return',
    tests: ['test/authserver/sessions/use.test.ts'],
  },
  {
    rule: 'a token that a backend took back is given to nobody while it is refreshed',
    file: 'src/authserver/sessions/token-use.ts',
    find: 'if (clock.now() < token.freshUntilMs && refused === undefined)',
    replace: 'if (clock.now() < token.freshUntilMs)',
    tests: ['test/authserver/sessions/refused.test.ts'],
  },
  {
    rule: 'who read it before goes on with the next one',
    file: 'src/authserver/sessions/token-use.ts',
    find: '(before.isFinal || !before.token.equals(refused.token))',
    replace: 'true',
    tests: ['test/authserver/sessions/refused.test.ts'],
  },
  {
    rule: 'claims are renewed at each refresh of ours',
    file: 'src/authserver/sessions/sessions.ts',
    find: 'if (held.refreshToken === undefined) return { claims }',
    replace: 'if (!isDueForClaims(held, loaded.record, clock.now())) return { claims }',
    tests: refreshed,
  },
  {
    rule: 'claims of tokens that are over are nobody’s',
    file: 'src/authserver/sessions/sessions.ts',
    find: 'if (isDueForClaims(held, loaded.record, clock.now())) throw error',
    replace: '',
    tests: refreshed,
  },
  {
    rule: 'who lost the lock sends no refresh token',
    file: 'src/authserver/sessions/refresh.ts',
    find: 'if (!lock.isHeld)',
    replace: 'if (lock.fence < 0)',
    tests: sessions,
  },
  {
    rule: 'who comes late takes what the next one has stored',
    file: 'src/authserver/sessions/refresh.ts',
    find: 'if (there.generation !== from.generation) return loaded.record',
    replace: '',
    tests: sessions,
  },
  {
    rule: 'a replica that does not know who was logged out lets nobody in',
    file: 'src/authserver/sessions/ended.ts',
    find: 'if (!isLoaded)\n',
    replace: 'if (isClosed)\n',
    tests: ['test/authserver/sessions/ended.test.ts'],
  },
  {
    rule: 'an HMAC secret has 32 bytes',
    file: 'src/authserver/keys/sealing-secrets.ts',
    find: 'first.bytes().length < LEAST_BYTES',
    replace: 'first.bytes().length < 1',
    tests: ['test/authserver/chain-and-keys.test.ts'],
  },
]
