import type { Mutation } from './mutation.ts'

const ASSERTIONS = 'src/oauth/client-authentication.ts'
const TESTS = ['test/system/oauth/client-authentication.test.ts']

/** How the proxy authenticates at authorization servers. */
export const CLIENTS: readonly Mutation[] = [
  {
    rule: 'a token of ours whose time is over is not shown',
    file: ASSERTIONS,
    find: 'if (!hasEnded(again)) return again',
    replace: 'return again',
    tests: TESTS,
  },
  {
    rule: 'a certificate of ours whose time is over is not shown',
    file: 'src/oauth/client-certificate.ts',
    find: 'if (certificate.validToDate.getTime() > clock.now()) return',
    replace: 'if (certificate.validToDate.getTime() > 0) return',
    tests: TESTS,
  },
  {
    rule: 'a certificate belongs to the key that signs',
    file: 'src/oauth/client-certificate.ts',
    find: 'if (certificate.checkPrivateKey(key)) return',
    replace: 'if (certificate.publicKey !== undefined) return',
    tests: TESTS,
  },
  {
    rule: 'a newer token of ours retires no credentials',
    file: ASSERTIONS,
    find: '{ lasting: [] }',
    replace: '{}',
    tests: TESTS,
  },
  {
    rule: 'without its certificate a client sends nothing',
    file: 'src/net/outbound.ts',
    find: '(clientCertificate !== undefined && client === undefined)',
    replace: 'false',
    tests: ['test/unit/net/outbound-certificate.test.ts'],
  },
  {
    rule: 'assertions for introspection are for the issuer',
    file: 'src/oauth/provider-client.ts',
    find: 'own.authenticate({ url, issuer: provider.issuerUrl })',
    replace: 'own.authenticate({ url })',
    tests: ['test/unit/oauth/client-auth.test.ts'],
  },
  {
    rule: 'at an upstream no other method is tried than the one that is told',
    file: 'src/upstreams/upstream-client.ts',
    find: "config.clientAuth === undefined && auth.method === 'clientSecretBasic'",
    replace: "auth.method === 'clientSecretBasic'",
    tests: ['test/unit/oauth/client-auth.test.ts'],
  },
  {
    rule: 'assertions are for the server, whichever endpoint they are shown to',
    file: 'src/upstreams/token-endpoint.ts',
    find: 'authenticate: () => authenticate({ url, issuer })',
    replace: 'authenticate: () => authenticate({ url: to, issuer })',
    tests: ['test/unit/oauth/client-auth.test.ts'],
  },
  {
    rule: 'aliases are for who shows a certificate',
    file: 'src/upstreams/discovery.ts',
    find: 'isMutualTls ? withAliases(document) : document',
    replace: 'withAliases(document)',
    tests: ['test/unit/oauth/client-auth.test.ts'],
  },
  {
    rule: 'nobody can log in while the token that an upstream is shown is missing',
    file: 'src/authserver/server.ts',
    find: ', ...tokensOfUpstreams(spec, deps)]',
    replace: ']',
    tests: ['test/unit/examine/check/upstream.test.ts'],
  },
  {
    rule: 'aliases are for who shows a certificate, at token endpoints that are discovered, too',
    file: 'src/oauth/discovery.ts',
    find: 'isMutualTls ? withAliases(document) : document',
    replace: 'withAliases(document)',
    tests: ['test/unit/obtain/client-auth.test.ts'],
  },
]
