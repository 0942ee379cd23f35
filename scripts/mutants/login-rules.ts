import type { Mutation } from './mutation.ts'

const IDENTITY = ['test/unit/authserver/identity.test.ts']
const RULES = ['test/unit/authserver/client-rules.test.ts']
const WRITTEN = ['test/unit/load/documents/client-rules.test.ts']
const REGISTERED = ['test/unit/authserver/upstream-registration.test.ts']
const METADATA = 'src/authserver/clients/metadata.ts'
const CLIENT_FIELDS = 'src/resources/client-rules.ts'

/** What fields of an embedded authorization server say of its users and clients: `resources`, `upstreams`, `authserver/clients`. */
export const LOGIN_RULES: readonly Mutation[] = [
  {
    rule: 'who it is stands in the claim that the configuration names',
    file: 'src/upstreams/id-token.ts',
    find: "subjectClaim === 'sub' ? own : nameIn(claims, subjectClaim)",
    replace: 'own',
    tests: IDENTITY,
  },
  {
    rule: 'a claim that says who it is is a text',
    file: 'src/upstreams/id-token.ts',
    find: "if (typeof name === 'string' && name.trim() !== '' && name.length <= MAX_SUBJECT_LENGTH) return name",
    replace: "if (name !== undefined && name !== '') return String(name)",
    tests: IDENTITY,
  },
  {
    rule: 'nobody logs in without a subject in the answer of the token endpoint',
    file: 'src/upstreams/token-identity.ts',
    find: 'if (subject === undefined) throw unusable(`${WHERE}: there is no subject at subjectPath`)',
    replace: "if (subject === undefined) return { subject: 'nobody', claims: Object.freeze({ sub: 'nobody' }) }",
    tests: IDENTITY,
  },
  {
    rule: 'who logs in is who the primary upstream says',
    file: 'src/authserver/addresses.ts',
    find: 'const chain = upstreamsInOrder(spec)',
    replace: 'const chain = spec.upstreamProviders',
    tests: IDENTITY,
  },
  {
    rule: 'only public clients register where the configuration says so',
    file: METADATA,
    find: '    if (!known.allowsConfidential)\n',
    replace: "    if (!known.allowsConfidential && told === 'client_secret_basic')\n",
    tests: RULES,
  },
  {
    rule: 'a client that gets a secret unasked is on no device',
    file: METADATA,
    find: 'if (redirectUris.some(isOnOwnDevice))',
    replace: 'if (redirectUris.every(isOnOwnDevice))',
    tests: RULES,
  },
  {
    rule: 'no document is fetched where clients are not known by theirs',
    file: 'src/authserver/clients/client.ts',
    find: 'cimd?.enabled !== false',
    replace: 'cimd?.enabled !== undefined || cimd === undefined',
    tests: RULES,
  },
  {
    rule: 'what a manifest of the other group leaves out is off as it is there',
    file: 'src/load/documents/parse-documents.ts',
    find: 'sorted.isOfOthers ? asTheyMean(value, sorted.kind) : value',
    replace: 'sorted.isOfOthers ? value : value',
    tests: WRITTEN,
  },
  {
    rule: 'secrets of clients are not given out over plain http',
    file: CLIENT_FIELDS,
    find: "value['insecureAllowHTTP'] !== true || !isConfidential(value)",
    replace: "value['insecureAllowHTTP'] !== true || isConfidential(value)",
    tests: WRITTEN,
  },
  {
    rule: 'nor on this machine where the configuration says so',
    file: CLIENT_FIELDS,
    find: "value['insecureAllowConfidentialOverLoopbackHTTP'] !== false ||",
    replace: "value['insecureAllowConfidentialOverLoopbackHTTP'] !== null ||",
    tests: WRITTEN,
  },
  {
    rule: 'an issuer beyond this machine is https unless the configuration says otherwise',
    file: 'src/resources/embedded-auth-server.ts',
    find: 'isIssuer(value[name], value[INSECURE] === true)',
    replace: 'isIssuer(value[name], value[INSECURE] !== null)',
    tests: WRITTEN,
  },
  {
    rule: 'upstream tokens stay here where the configuration says so',
    file: 'src/load/routes/resolve-auth.ts',
    find: "if (disableUpstreamTokenInjection === true) return { type: 'unauthenticated', spec: {} }",
    replace: '',
    tests: ['test/unit/load/routes/upstream-use.test.ts'],
  },
  {
    rule: 'and no other route sends them',
    file: 'src/load/routes/resolve-auth-server.ts',
    find: 'if (disableUpstreamTokenInjection === true)',
    replace: "if (disableUpstreamTokenInjection === true && kind === 'id_token')",
    tests: ['test/unit/load/routes/upstream-use.test.ts'],
  },
  {
    rule: 'what was registered at an upstream is sealed in the store',
    file: 'src/authserver/upstream-registrations.ts',
    find: 'await store.put(key, seal.seal(key, made), KEPT_MS)',
    replace: 'await store.put(key, made, KEPT_MS)',
    tests: REGISTERED,
  },
  {
    rule: 'one replica registers at a time',
    file: 'src/authserver/upstream-registrations.ts',
    find: '          if (again !== undefined && isUsable(again)) return again\n',
    replace: '',
    tests: REGISTERED,
  },
  {
    rule: 'an upstream that refuses to register us is not asked by each login',
    file: 'src/upstreams/registered-client.ts',
    find: 'if (isDuring(failed, clock.now()))',
    replace: 'if (isDuring(failed, -1))',
    tests: REGISTERED,
  },
  {
    rule: 'an upstream that forgets us at once is not asked again at once',
    file: 'src/upstreams/registered-client.ts',
    find: 'if (isDuring({ sinceMs: atMs, untilMs: atMs + LEAST_AGE_MS }, clock.now())) return',
    replace: '',
    tests: REGISTERED,
  },
  {
    rule: 'what an upstream says of a refused registration is told by its code alone',
    file: 'src/upstreams/registered-client.ts',
    find: 'error !== undefined && /^[a-z_]{1,64}$/.test(error)',
    replace: 'error !== undefined',
    tests: REGISTERED,
  },
]
